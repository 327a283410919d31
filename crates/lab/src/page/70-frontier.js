// Energy against accuracy over the plans of the sweep.
(function (page) {
  'use strict';

  const { html, svg, words } = page;

  function draw() {
    const seed = page.seed();
    const body = page.bodyOf('frontier');
    if (page.edited()) {
      body.replaceChildren(page.notComputed());
      return;
    }
    if (!seed || seed.plans.length < 2) return;
    const plan = page.plan();
    const measured = seed.plans.every((one) => words.known(one.accuracy));
    const run = page.run().summary.length > 0;
    const wide = body.clientWidth >= 760;
    const width = Math.max(320, Math.min(wide ? body.clientWidth - 360 : body.clientWidth - 34, 760));
    body.replaceChildren(
      html(
        'div',
        { class: 'desk' },
        html(
          'figure',
          { class: 'board' },
          html(
            'div',
            { class: 'legend' },
            mark('now', 'shown now'),
            mark('used', run ? 'used by the run' : 'at the problem’s own weights'),
            mark('', 'other plans of the sweep'),
          ),
          html('div', { class: 'scroll' }, scatter(seed, width, measured)),
          html(
            'figcaption',
            { class: 'quiet' },
            measured
              ? words.ofSeed('Up and left is better. Accuracy is the mean over targets')
              : 'Not every plan’s accuracy was measured; the error bound of sources and targets, which a plan weighs against energy, stands in. Down and left is better.',
          ),
        ),
        html(
          'div',
          { class: 'side' },
          html(
            'div',
            { class: 'card' },
            html('h3', {}, `Plan ${page.state.plan + 1} of ${seed.plans.length}`),
            numbers(plan),
            against(seed, plan),
          ),
        ),
      ),
    );
  }

  const mark = (kind, text) =>
    html(
      'span',
      { class: 'key' },
      svg('svg', { width: 18, height: 18, 'aria-hidden': 'true' }, ...point(9, 9, kind)),
      text,
    );

  function point(x, y, kind) {
    const parts = [];
    if (kind.includes('used')) parts.push(svg('circle', { class: 'ring', cx: x, cy: y, r: 8 }));
    parts.push(
      svg('circle', {
        class: kind.includes('now') ? 'spot now' : 'spot',
        cx: x,
        cy: y,
        r: kind.includes('now') ? 5.5 : 4,
      }),
    );
    return parts;
  }

  function scatter(seed, width, measured) {
    const height = Math.round(Math.max(260, Math.min(360, width * 0.55)));
    // Both terms: a plan with fewer sources has more targets, so the one alone goes up and down.
    const yOf = (plan) => (measured ? plan.accuracy : plan.terms.source + plan.terms.target);
    const shown = seed.plans
      .map((plan, index) => ({ plan, index }))
      .filter(({ plan }) => words.known(plan.joules) && words.known(yOf(plan)));
    if (shown.length === 0) return page.empty('These plans have no energy or accuracy to draw.');
    const xs = shown.map(({ plan }) => plan.joules);
    const ys = shown.map(({ plan }) => yOf(plan));
    const xTicks = page.niceTicks(Math.min(0, ...xs), Math.max(...xs), Math.max(3, Math.floor(width / 110)));
    let yTicks = page.niceTicks(Math.min(...ys), Math.max(...ys), 5);
    // Noise of a tenth of a percent shall not look like a cliff.
    if (measured && yTicks[yTicks.length - 1] - yTicks[0] < 0.04) {
      const middle = Math.min(0.98, (Math.min(...ys) + Math.max(...ys)) / 2);
      yTicks = page.niceTicks(middle - 0.02, middle + 0.02, 4);
    }
    if (measured) yTicks = yTicks.filter((tick) => tick <= 1.0000001 && tick >= 0);
    const writeY = measured
      ? (value) => words.percent(value, yTicks[1] - yTicks[0] < 0.0099 ? 1 : 0)
      : (value) => words.number(value, 3);
    const left = Math.ceil(Math.max(...yTicks.map((tick) => page.textWidth(writeY(tick), 12)))) + 14;
    const box = { left, right: width - 26, top: 34, bottom: height - 48 };
    const x = page.linear([xTicks[0], xTicks[xTicks.length - 1]], [box.left + 6, box.right]);
    const y = page.linear([yTicks[0], yTicks[yTicks.length - 1]], [box.bottom, box.top]);
    const root = svg(
      'svg',
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: 'group',
        'aria-label': 'Energy against accuracy of the plans',
      },
      page.axes(
        box,
        { ticks: xTicks, scale: x },
        { ticks: yTicks, scale: y },
        {
          x: words.joules,
          y: writeY,
          xName: `energy of ${words.linkNames(seed.plans)}`,
          yName: measured ? 'target accuracy' : 'error bound, sources + targets',
        },
      ),
      svg('path', {
        class: 'thread',
        d: shown
          .map(({ plan }, at) => `${at ? 'L' : 'M'}${x(plan.joules).toFixed(1)} ${y(yOf(plan)).toFixed(1)}`)
          .join(''),
      }),
    );
    // The one shown is drawn last, over plans that share its place.
    const drawn = shown
      .slice()
      .sort((a, b) => Number(a.index === page.state.plan) - Number(b.index === page.state.plan));
    for (const { plan, index } of drawn) {
      const kind = (index === page.state.plan ? 'now ' : '') + (index === seed.chosen ? 'used' : '');
      root.append(
        svg(
          'g',
          { class: 'plan', on: { click: () => page.show('plan', index) } },
          svg('title', {}, words.planLine(plan)),
          svg('circle', { class: 'reach', cx: x(plan.joules), cy: y(yOf(plan)), r: 12 }),
          ...point(x(plan.joules), y(yOf(plan)), kind),
        ),
      );
    }
    return root;
  }

  function numbers(plan) {
    const counts = words.roleCounts(plan);
    const rows = [
      ['energy weight φᴱ', words.number(plan.phi_e)],
      ['sources', words.count(counts.sources)],
      ['targets', words.count(counts.targets)],
      ['links', words.count(counts.links)],
      ...(counts.handovers > 0 ? [['hand-overs', words.count(counts.handovers)]] : []),
      [`energy of ${words.linkNames([plan])}`, words.joules(plan.joules)],
      ['percentage of all links', words.percent(plan.energy_share)],
      ['target accuracy', words.known(plan.accuracy) ? words.percent(plan.accuracy) : 'not measured'],
      ['objective', words.number(plan.objective)],
      ['· error bound', words.number(plan.terms.source + plan.terms.target)],
      ['·· sources', words.number(plan.terms.source)],
      ['·· targets', words.number(plan.terms.target)],
      ['· energy', words.number(plan.terms.energy)],
      ['lower bound', words.number(plan.lower_bound)],
      ['status', `${words.status(plan)} under ${words.boundName(plan)}`],
    ];
    return html(
      'dl',
      { class: 'pairs' },
      ...rows.flatMap(([name, value]) => [html('dt', {}, name), html('dd', {}, value)]),
    );
  }

  // What moved, in words: the change is easier to trust than two pictures to compare.
  function against(seed, plan) {
    const whose = page.run().summary.length > 0 ? 'the plan that the run used' : 'the plan at the problem’s own weights';
    if (page.state.plan === seed.chosen) return html('p', { class: 'quiet' }, `This is ${whose}.`);
    const used = seed.plans[seed.chosen];
    const key = (link) => `${link.from} ${link.to}`;
    const missing = (some, others) => {
      const known = new Set(others.map(key));
      return some.filter((one) => !known.has(key(one))).length;
    };
    const changed = (what, before, now) =>
      `${words.plural(missing(now, before), what)} added, ${words.count(missing(before, now))} removed`;
    const turned = plan.roles.reduce((sum, role, index) => sum + (role === used.roles[index] ? 0 : 1), 0);
    const changes = [
      changed('link', used.links, plan.links),
      ...(used.handovers.length + plan.handovers.length > 0
        ? [changed('hand-over', used.handovers, plan.handovers)]
        : []),
      `${words.plural(turned, 'device')} in another role`,
      words.signed(plan.joules - used.joules, words.joules),
    ];
    return html('p', { class: 'quiet' }, `Against ${whose}: ${changes.join(', ')}.`);
  }

  page.section('frontier', ['plan', 'width'], draw);
})(window.stlfReport);
