// Methods side by side: accuracy and energy as bars, and the same as a table. With two runs, both.
(function (page) {
  'use strict';

  const { html, svg, words } = page;
  const OURS = ['st-lf', 'st-lf-links'];

  function draw() {
    const body = page.bodyOf('methods');
    const runs = page.state.document.runs;
    const two = runs.length > 1;
    const methods = union(runs);
    if (methods.length === 0) {
      body.replaceChildren(page.empty('No methods have been compared yet.'), ...(two ? page.roleDifferences() : []));
      return;
    }
    const seeds = Math.max(...runs.map((run) => run.seeds.length));
    const interval =
      seeds > 1
        ? `Means over ${words.plural(seeds, 'seed')}; whiskers and ± are 95 % intervals of the mean (Student’s t).`
        : 'With one seed there is no interval to show.';
    const wide = body.clientWidth >= 760;
    const room = Math.max(300, (wide ? (body.clientWidth - 20) / 2 : body.clientWidth) - 36);
    const accuracy = bars(methods, runs, {
      title: 'Target accuracy',
      room,
      spread: (entry) => entry.accuracy,
      top: 1,
      write: (value) => words.percent(value),
      tick: (value) => words.percent(value, 0),
      missing: noAccuracy,
    });
    const joules = bars(methods, runs, {
      title: 'Energy, with measuring where a method needs it',
      room,
      spread: (entry) => entry.joules,
      top: null,
      write: words.joules,
      tick: words.joules,
      missing: () => 'unknown',
    });
    const keys = two
      ? html(
          'div',
          { class: 'legend' },
          ...runs.map((run, index) =>
            html(
              'span',
              { class: 'key' },
              html('span', { class: `swatch run${index}`, 'aria-hidden': 'true' }),
              words.shorten(run.name, 40),
            ),
          ),
        )
      : null;
    body.replaceChildren(
      ...page.notEdited(),
      html('p', { class: 'lead' }, `Every method on the same devices. ${interval}`),
      ...(keys ? [keys] : []),
      html('div', { class: 'pair' }, accuracy, joules),
      two ? page.comparisonTable(methods) : methodTable(runs[0], methods),
      ...runs.map((run) => measuring(run, two)).filter(Boolean),
      ...(two ? page.roleDifferences() : []),
    );
  }

  // In the order of the first run; what only the second has follows.
  function union(runs) {
    const found = new Map();
    runs.forEach((run, at) => {
      for (const entry of run.summary) {
        if (!found.has(entry.method))
          found.set(entry.method, { method: entry.method, label: entry.label || entry.method, entries: [] });
        found.get(entry.method).entries[at] = entry;
      }
    });
    return Array.from(found.values());
  }

  function bars(methods, runs, how) {
    const two = runs.length > 1;
    const labels = methods.map((one) => page.fitText(one.label, 110, 13, OURS.includes(one.method) ? 700 : 400));
    const left = Math.min(120, Math.ceil(Math.max(...labels.map((label) => page.textWidth(label, 13, 700)))) + 12);
    const ends = methods.flatMap((one) => one.entries.map((entry) => how.spread(entry)).filter(Boolean));
    const far = Math.max(1e-12, ...ends.map((spread) => (words.known(spread.high) ? spread.high : spread.mean)));
    const ticks = how.top ? [0, 0.25, 0.5, 0.75, 1] : page.niceTicks(0, far, 4);
    const valueRoom =
      Math.ceil(Math.max(...ends.map((spread) => page.textWidth(how.write(spread.mean), 12, 600)), 40)) + 12;
    const row = two ? 40 : 28;
    const width = Math.floor(how.room);
    const height = methods.length * row + 34;
    const x = page.linear([0, ticks[ticks.length - 1]], [left, width - valueRoom]);
    const root = page.canvas(width, height, `${how.title} by method; the table below has the same numbers`);
    for (const tick of ticks) {
      root.append(
        svg('line', { class: 'grid', x1: x(tick), x2: x(tick), y1: 4, y2: height - 26 }),
        svg('text', { class: 'tick', x: x(tick), y: height - 9, 'text-anchor': 'middle' }, how.tick(tick)),
      );
    }
    methods.forEach((one, index) => {
      const ours = OURS.includes(one.method);
      const middle = index * row + row / 2 + 2;
      root.append(
        svg(
          'text',
          { class: ours ? 'name ours' : 'name', x: left - 8, y: middle + 4, 'text-anchor': 'end' },
          labels[index],
          svg('title', {}, one.label),
        ),
      );
      runs.forEach((run, at) => {
        const y = two ? middle + (at === 0 ? -8 : 8) : middle;
        bar(root, {
          spread: one.entries[at] ? how.spread(one.entries[at]) : undefined,
          missing: one.entries[at] ? how.missing(one.entries[at]) : 'not run',
          x,
          y,
          left,
          thick: two ? 11 : 16,
          kind: `bar ${two ? `run${at}` : ours ? 'ours' : 'other'}`,
          how,
          label: `${one.label}${two ? ', ' + run.name : ''}`,
        });
      });
    });
    return html(
      'figure',
      { class: 'board' },
      html('figcaption', {}, how.title),
      html('div', { class: 'scroll' }, root),
    );
  }

  function bar(root, { spread, missing, x, y, left, thick, kind, how, label }) {
    if (!spread || !words.known(spread.mean)) {
      root.append(
        svg('text', { class: 'missing', x: left + 4, y: y + 4 }, missing),
      );
      return;
    }
    const end = x(spread.mean);
    const spreads = words.known(spread.low) && words.known(spread.high) && spread.high > spread.low;
    const interval = spreads ? ` (95 % interval ${how.write(spread.low)} to ${how.write(spread.high)})` : '';
    const title = `${label}: ${how.write(spread.mean)}${interval}`;
    root.append(
      svg(
        'rect',
        { class: kind, x: left, y: y - thick / 2, width: Math.max(1, end - left), height: thick },
        svg('title', {}, title),
      ),
    );
    let after = end;
    if (spreads) {
      const from = Math.max(left, x(spread.low));
      // An interval of a share may reach past all; the whisker ends where the axis does.
      const to = Math.min(x(how.top || Infinity), x(spread.high));
      after = Math.max(after, to);
      root.append(
        svg('path', { class: 'whisker', d: `M${from} ${y}H${to}M${from} ${y - 4}V${y + 4}M${to} ${y - 4}V${y + 4}` }),
      );
    }
    root.append(svg('text', { class: 'value', x: after + 6, y: y + 4 }, how.write(spread.mean)));
  }

  // Without links there is no model, and with them nobody knows how accurate it is.
  const noAccuracy = (entry) => (mean(entry.links) > 0 ? 'not known' : 'no model');

  const mean = (spread) => (spread && words.known(spread.mean) ? spread.mean : null);

  function methodTable(run, methods) {
    const spreadOf = (key) => (one) => one.entries[0][key];
    const column = (key, name, write, note) => ({
      key,
      name,
      note,
      numeric: true,
      value: (one) => mean(spreadOf(key)(one)),
      cell: (one) => write(spreadOf(key)(one), one.entries[0]),
    });
    const table = page.table({
      label: 'Methods compared',
      one: 'method',
      rows: methods,
      mark: (one) => (OURS.includes(one.method) ? 'ours' : null),
      columns: [
        { key: 'label', name: 'Method', head: true, value: (one) => one.label, cell: (one) => one.label },
        column(
          'accuracy',
          'Target accuracy, %',
          (spread, entry) => (spread ? words.meanWithin(spread, 100, 1) : noAccuracy(entry)),
          'mean over seeds ± half its 95 % interval',
        ),
        column('targets', 'Targets', (spread) => words.meanWithin(spread, 1, 1)),
        column(
          'links',
          'Links',
          (spread) => words.meanWithin(spread, 1, 1),
          'models that are sent: over links, and over every hand-over each time, twice on a ring',
        ),
        column(
          'joules',
          'Energy',
          (spread) => words.joules(mean(spread)),
          'links, and measuring where the method needs it',
        ),
        column(
          'energy_share',
          'Of all links, %',
          (spread) => words.meanWithin(spread, 100, 0),
          'that energy over every source sending to every target, which needs no measuring',
        ),
        column('bytes', 'Sent', (spread) => words.bytes(mean(spread)), 'links, and measuring where the method needs it'),
      ],
    });
    return table.element;
  }

  function measuring(run, two) {
    const cost = run.measuring;
    if (!cost) return null;
    const whose = two ? `${words.shorten(run.name, 40)}: m` : 'M';
    return html(
      'p',
      { class: 'quiet' },
      `${whose}easuring divergences (${cost.estimator}) sent ${words.bytes(cost.bytes)} at ${words.joules(cost.joules)} per seed, counted where a method needs it. ${cost.protection}`,
    );
  }

  page.ours = OURS;
  page.meanOf = mean;
  page.section('methods', ['seed', 'width'], draw);
})(window.stlfReport);
