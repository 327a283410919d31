// The objective as each solver went: one line per trace.
(function (page) {
  'use strict';

  const { html, svg, words } = page;

  function draw() {
    const body = page.bodyOf('objective');
    const seed = page.seed();
    if (page.edited()) {
      body.replaceChildren(page.notComputed());
      return;
    }
    if (!seed || seed.traces.length === 0) {
      body.replaceChildren(page.empty('No iterations were recorded for this plan.'));
      return;
    }
    const traces = seed.traces
      .map((trace, index) => ({
        name: String(trace.name),
        values: trace.values,
        valid: trace.valid,
        series: index % 4,
      }))
      .filter((trace) => trace.values.some(words.known));
    if (traces.length === 0) {
      body.replaceChildren(page.empty('No iterations were recorded for this plan.'));
      return;
    }
    const readout = html(
      'p',
      { class: 'readout', role: 'status' },
      'Point at the chart to read the values of an iteration.',
    );
    const chart = lines(traces, Math.max(320, Math.min(body.clientWidth - 34, 920)), readout);
    body.replaceChildren(
      html(
        'p',
        { class: 'lead' },
        lead(traces),
      ),
      html(
        'figure',
        { class: 'board' },
        html(
          'div',
          { class: 'legend' },
          ...traces.map((trace) =>
            html(
              'span',
              { class: 'key' },
              svg(
                'svg',
                { width: 34, height: 12, 'aria-hidden': 'true' },
                svg('line', { class: `series s${trace.series}`, x1: 1, x2: 33, y1: 6, y2: 6 }),
              ),
              `${trace.name}: ${words.number(last(trace.values))}`,
            ),
          ),
        ),
        html('div', { class: 'scroll' }, chart),
        readout,
      ),
      numbers(traces),
    );
  }

  // The paper's solver lets devices be partly source and partly target: what that costs is the cost of no plan, and may be less
  // than the least cost of one.
  function lead(traces) {
    const seed = page.seed();
    const plan = seed.plans[seed.chosen];
    const parts = [`The plan in use costs ${words.number(plan.objective)} under ${words.boundName(plan)}, ${words.status(plan)}.`];
    parts.push('Below: the same fleet under the paper’s bound; lower is better, and a single value is drawn across.');
    if (traces.some((trace) => !trace.valid))
      parts.push('A relaxed value belongs to fractional roles, not to a valid plan: it may be below the best plan.');
    return parts.join(' ');
  }

  const last = (values) => values.filter(words.known).slice(-1)[0];

  function lines(traces, width, readout) {
    const height = Math.round(Math.max(240, Math.min(340, width * 0.45)));
    const all = traces.flatMap((trace) => trace.values.filter(words.known));
    const low = Math.min(...all);
    const high = Math.max(...all);
    const steps = Math.max(2, ...traces.map((trace) => trace.values.length));
    // Over two orders of magnitude a linear axis would hide where the search ends.
    const log = low > 0 && high / low > 100;
    const yTicks = log ? page.powerTicks(low, high) : page.niceTicks(low, high, 5);
    const write = (value) => words.number(value);
    const left = Math.ceil(Math.max(...yTicks.map((tick) => page.textWidth(write(tick), 12)))) + 14;
    const box = { left, right: width - 12, top: 34, bottom: height - 48 };
    const domain = [yTicks[0], yTicks[yTicks.length - 1]];
    const y = (log ? page.logarithmic : page.linear)(domain, [box.bottom, box.top]);
    const x = page.linear([1, steps], [box.left + 8, box.right - 8]);
    const xTicks = page
      .niceTicks(1, steps, Math.min(8, Math.floor(width / 80)))
      .filter((tick) => Number.isInteger(tick) && tick >= 1 && tick <= steps);
    if (!xTicks.includes(1)) xTicks.unshift(1);
    const root = page.canvas(
      width,
      height,
      `Objective per iteration: ${traces.map((trace) => trace.name).join(', ')}`,
      page.axes(
        box,
        { ticks: xTicks, scale: x },
        { ticks: yTicks, scale: y },
        {
          x: (tick) => words.count(tick),
          y: write,
          xName: 'iteration',
          yName: `objective, paper’s bound${log ? ', logarithmic' : ''}`,
        },
      ),
    );
    for (const trace of traces) {
      const points = trace.values.map((value, index) => [index + 1, value]).filter(([, value]) => words.known(value));
      if (points.length === 1) {
        root.append(
          svg('line', {
            class: `series s${trace.series}`,
            'data-valid': String(trace.valid),
            x1: box.left,
            x2: box.right,
            y1: y(points[0][1]),
            y2: y(points[0][1]),
          }),
        );
        continue;
      }
      root.append(
        svg('path', {
          class: `series s${trace.series}`,
          'data-valid': String(trace.valid),
          d: points
            .map(([at, value], index) => `${index ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)
            .join(''),
        }),
      );
      if (points.length <= 60)
        for (const [at, value] of points)
          root.append(svg('circle', { class: `dot s${trace.series}`, cx: x(at), cy: y(value), r: 3 }));
    }
    const cross = svg('line', { class: 'cross', y1: box.top, y2: box.bottom, visibility: 'hidden' });
    root.append(cross);
    root.addEventListener('pointermove', (event) => {
      const frame = root.getBoundingClientRect();
      const px = ((event.clientX - frame.left) * width) / frame.width;
      const at = Math.min(
        steps,
        Math.max(1, Math.round(1 + ((px - box.left - 8) / (box.right - box.left - 16)) * (steps - 1))),
      );
      cross.setAttribute('x1', x(at));
      cross.setAttribute('x2', x(at));
      cross.setAttribute('visibility', 'visible');
      readout.textContent =
        `Iteration ${words.count(at)}: ` +
        traces
          .map(
            (trace) =>
              `${trace.name} ${words.number(trace.values[trace.values.length === 1 ? 0 : at - 1])}`,
          )
          .join(', ');
    });
    root.addEventListener('pointerleave', () => cross.setAttribute('visibility', 'hidden'));
    return root;
  }

  function numbers(traces) {
    const steps = Math.max(...traces.map((trace) => trace.values.length));
    const rows = Array.from({ length: steps }, (_, index) => index);
    const table = page.table({
      label: 'Objective per iteration',
      one: 'iteration',
      rows,
      columns: [
        { key: 'at', name: 'Iteration', numeric: true, head: true, cell: (index) => words.count(index + 1) },
        ...traces.map((trace, at) => ({
          key: `t${at}`,
          name: trace.name,
          numeric: true,
          cell: (index) => words.number(trace.values[index], 6),
        })),
      ],
    });
    return html('details', { class: 'fold' }, html('summary', {}, 'The same as numbers'), table.element);
  }

  page.section('objective', ['seed', 'width'], draw);
})(window.stlfReport);
