// The fleet as a graph of sources and targets, and the line of facts above it.
(function (page) {
  'use strict';

  const { html, svg, byId, words } = page;

  let shown = null; // {model, root, nodes: Map(node → element), links: Map(edge → element), arrows: likewise}
  let reserved = { key: '', height: 0 };

  function drawFacts() {
    const plan = page.plan();
    const box = byId('facts');
    box.hidden = !plan;
    if (!plan) return box.replaceChildren();
    const counts = words.roleCounts(plan);
    const each = counts.handovers > 0 ? 'links per target' : 'per target';
    const facts = [
      ['Sources', words.count(counts.sources), 'train on their own labels'],
      ['Targets', words.count(counts.targets), 'receive a mixture'],
      [
        counts.handovers > 0 ? 'Links and hand-overs' : 'Links',
        words.count(counts.links) + (counts.handovers > 0 ? ` and ${words.count(counts.handovers)}` : ''),
        counts.targets > 0 ? `${words.fixed(counts.links / counts.targets, 1)} ${each}` : 'nothing to send',
      ],
      [
        `Energy of ${words.linkNames([plan])}`,
        words.joules(plan.joules),
        (words.known(plan.energy_share) ? `${words.percent(plan.energy_share)} of all links` : 'of sending models') +
          beforeMeasuring(),
      ],
      words.known(plan.accuracy)
        ? ['Target accuracy', words.percent(plan.accuracy), words.ofSeed('mean over targets')]
        : null,
      ['Objective', words.number(plan.objective), `${words.status(plan)} under ${words.boundName(plan)}`],
    ];
    return box.replaceChildren(
      ...facts
        .filter(Boolean)
        .map(([name, value, note]) =>
          html(
            'div',
            {},
            html('dt', {}, name),
            html('dd', {}, html('strong', {}, value), html('span', { class: 'quiet' }, note)),
          ),
        ),
    );
  }

  // What the choice of links cost stands beside what it saved.
  function beforeMeasuring() {
    const { measuring } = page.run();
    return measuring ? `, before measuring (${words.joules(measuring.joules)})` : '';
  }

  function drawLegend(model) {
    const top = page.divergenceTop(page.seed());
    const glyph = (kind, text) =>
      html(
        'span',
        { class: 'key' },
        svg(
          'svg',
          { width: 16, height: 16, 'aria-hidden': 'true' },
          kind !== 'target'
            ? svg('circle', { class: `mark-source ${kind}`, cx: 8, cy: 8, r: 6 })
            : svg('rect', { class: 'mark-target', x: 4, y: 1.5, width: 8, height: 13, rx: 2 }),
        ),
        text,
      );
    const thick = html(
      'span',
      { class: 'key' },
      svg(
        'svg',
        { width: 34, height: 16, 'aria-hidden': 'true' },
        svg('path', { class: 'wedge', d: 'M1 8.5L33 3V13L1 8.5Z' }),
      ),
      model.grouped ? 'thickness: weight, summed' : 'thickness: weight',
    );
    const pinned = page.seed().devices.some((device) => device.pin);
    const pin = svg(
      'svg',
      { width: 16, height: 16, 'aria-hidden': 'true' },
      svg('circle', { class: 'mark-source', cx: 8, cy: 8, r: 6 }),
      svg('circle', { class: 'pin', cx: 8, cy: 8, r: 2.2 }),
    );
    byId('fleet-legend').replaceChildren(
      glyph('source', 'source'),
      ...(model.sources.some((node) => node.idle) ? [glyph('idle', 'sends nothing')] : []),
      glyph('target', 'target'),
      ...(pinned ? [html('span', { class: 'key' }, pin, 'pinned')] : []),
      thick,
      ...(page.handovers.any() ? [page.handovers.key()] : []),
      page.rampLegend('divergence', top, (value) => words.number(value, 3)),
    );
  }

  function rowsOf(model) {
    return Math.max(model.sources.length, model.targets.length, 1);
  }

  // The height is that of the tallest plan seen, so that the page stays still while plans change.
  function heightFor(model, width, pitch, margin) {
    const key = `${page.state.run} ${width} ${pitch}`;
    const wanted = margin.top + margin.bottom + pitch * Math.max(1, rowsOf(model) - 1);
    if (reserved.key !== key) reserved = { key, height: 0 };
    if (!model.grouped)
      for (const plan of page.seed().plans)
        reserved.height = Math.max(reserved.height, tallest(plan) * pitch + margin.top + margin.bottom);
    reserved.height = Math.max(reserved.height, wanted);
    return reserved.height;
  }

  function tallest(plan) {
    if (page.isLargePlan(plan)) return 0;
    const { sources, targets } = page.mesh(plan);
    return Math.max(sources.length, targets.length) - 1;
  }

  // As wide as the labels ask for, within what leaves the links room to be told apart.
  function sideFor(model, width) {
    let widest = 72;
    for (const node of model.sources.concat(model.targets)) {
      widest = Math.max(
        widest,
        page.textWidth(words.shorten(node.label, 40), 13, 600),
        page.textWidth(node.detail, 11),
      );
    }
    return Math.round(Math.min(Math.max(96, Math.min(280, width * 0.3)), widest + 24));
  }

  function drawGraph() {
    const box = byId('graph');
    const seed = page.seed();
    const plan = page.plan();
    if (!plan) {
      shown = null;
      byId('fleet-legend').replaceChildren();
      byId('graph-note').textContent = '';
      box.replaceChildren(page.empty('There is no plan yet.'));
      return;
    }
    const model = page.fleetModel(seed, plan);
    drawLegend(model);
    byId('graph-note').textContent = model.note;

    const width = Math.max(260, Math.floor(box.clientWidth) || 700);
    const roomy = width >= 560;
    const rows = rowsOf(model);
    const pitch = roomy ? (rows <= 14 ? 40 : rows <= 30 || model.grouped ? 34 : 24) : 34;
    const margin = { top: 56, bottom: 24 };
    const height = heightFor(model, width, pitch, margin);
    const side = sideFor(model, width);
    page.placeFleet(
      model,
      margin.top,
      height - margin.bottom,
      Math.min(pitch, (height - margin.top - margin.bottom) / Math.max(1, rows - 1)),
    );

    const xSource = side;
    const xTarget = width - side;
    const root = svg('svg', {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: 'fleet',
      role: 'group',
      'aria-label': `Fleet: ${words.planLine(plan)}`,
    });
    root.append(
      svg(
        'text',
        { class: 'column', x: xSource + 8, y: 24, 'text-anchor': 'end' },
        `Sources (${words.count(page.mesh(plan).sources.length)})`,
      ),
      svg(
        'text',
        { class: 'column', x: xTarget - 8, y: 24 },
        `Targets (${words.count(page.mesh(plan).targets.length)})`,
      ),
    );
    const links = drawLinks(root, model, xSource, xTarget, pitch);
    const arrows = page.handovers.draw(root, model, xSource);
    const nodes = drawNodes(root, model, { xSource, xTarget, side, roomy: pitch >= 34 });
    root.addEventListener('pointerleave', () => highlight(null));
    keepFocus(box, root, nodes);
    shown = { model, root, nodes, links, arrows };
    highlight(null);
  }

  // A redraw replaces the element in focus; its successor takes over, unless focus was elsewhere.
  function keepFocus(box, root, nodes) {
    const active = document.activeElement;
    const key = box.contains(active) ? active.getAttribute('data-node') : null;
    const scroll = box.scrollTop;
    box.replaceChildren(root);
    // Setting it lays the page out at once, which the first drawing need not pay for.
    if (scroll > 0) box.scrollTop = scroll;
    if (key === null) return;
    for (const element of nodes.values())
      if (element.getAttribute('data-node') === key) element.focus({ preventScroll: true });
  }

  function drawLinks(root, model, xSource, xTarget, pitch) {
    const top = page.divergenceTop(page.seed());
    const full = model.grouped ? Math.min(24, pitch - 6) : 11;
    const least = model.grouped ? 0.7 : 1.25;
    const thickness = (edge) =>
      Math.max(least, (edge.weight / Math.max(model.whole, edge.to.rest ? edge.to.members.length : 0)) * full);
    const layer = svg('g', { class: 'links' });
    const links = new Map();
    // What arrives at a target is stacked, so that its parts can be compared at a glance.
    for (const node of model.targets) {
      const into = node.edges.slice().sort((a, b) => a.from.y - b.from.y);
      let at = node.y - into.reduce((sum, edge) => sum + thickness(edge), 0) / 2;
      for (const edge of into) {
        edge.end = at + thickness(edge) / 2;
        at += thickness(edge);
      }
    }
    for (const edge of model.edges.slice().sort((a, b) => b.weight - a.weight)) {
      const bend = Math.round((xTarget - xSource) * 0.45);
      const y1 = edge.from.y.toFixed(1);
      const y2 = edge.end.toFixed(1);
      const x1 = xSource + 7;
      const x2 = xTarget - 5;
      const path = svg(
        'path',
        {
          class: 'link',
          d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
          'stroke-width': thickness(edge).toFixed(2),
          style: { stroke: words.known(edge.divergence) ? page.ramp(edge.divergence / top) : 'var(--unknown)' },
        },
        svg('title', {}, edge.title),
      );
      links.set(edge, path);
      layer.append(path);
    }
    root.append(layer);
    return links;
  }

  function drawNodes(root, model, frame) {
    const nodes = new Map();
    for (const node of model.sources.concat(model.targets)) {
      const source = node.side === 'source';
      const x = source ? frame.xSource : frame.xTarget;
      const room = frame.side - 18;
      const anchor = source ? 'end' : 'start';
      const tx = source ? x - 13 : x + 13;
      const name = page.fitText(node.label, room, 13, 600);
      const element = svg(
        'g',
        {
          class: `node ${node.side}${node.idle ? ' idle' : ''}${node.device === null ? ' crowd' : ''}`,
          tabindex: '0',
          role: 'button',
          'data-node': node.side + node.members[0],
          'aria-label': spoken(node),
          on: {
            click: () => choose(node),
            keydown: (event) => pressed(event, node),
            pointerenter: () => highlight(node),
            focus: () => highlight(node),
            blur: () => highlight(null),
          },
        },
        name === node.label ? null : svg('title', {}, node.label),
        svg('rect', {
          class: 'halo',
          x: source ? x - frame.side + 2 : x - 10,
          y: node.y - 15,
          width: frame.side + 8,
          height: 30,
          rx: 6,
        }),
        source
          ? svg('circle', { class: 'mark-source', cx: x, cy: node.y, r: 6.5 })
          : svg('rect', { class: 'mark-target', x: x - 4, y: node.y - 7, width: 8, height: 14, rx: 2 }),
        node.pinned ? svg('circle', { class: 'pin', cx: x, cy: node.y, r: source ? 2.2 : 1.8 }) : null,
        svg('text', { class: 'name', x: tx, y: node.y + (frame.roomy ? -1 : 4.5), 'text-anchor': anchor }, name),
        ' ',
        frame.roomy
          ? svg('text', { class: 'detail', x: tx, y: node.y + 12, 'text-anchor': anchor }, detail(node, room))
          : null,
      );
      nodes.set(node, element);
      root.append(element);
    }
    return nodes;
  }

  function detail(node, room) {
    const fits = page.textWidth(node.detail, 11) <= room;
    return fits || !node.brief ? page.fitText(node.detail, room, 11) : node.brief;
  }

  function spoken(node) {
    if (node.device === null) return `${node.label} ${node.detail}. Lists its devices.`;
    const ends = node.edges.map((edge) => (node.side === 'source' ? edge.to : edge.from).label);
    const way = node.side === 'source' ? 'sends to' : 'receives from';
    const links = ends.length > 0 ? `, ${way} ${words.some(ends)}` : '';
    return `${node.label} ${node.detail}, ${node.side}${page.handovers.spoken(node)}${links}. Explains it.`;
  }

  function choose(node) {
    if (node.device === null) page.listDevices(node.members, `${node.label} ${node.detail}`);
    else page.explain(node.device);
  }

  function pressed(event, node) {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      choose(node);
      return;
    }
    const column = node.side === 'source' ? shown.model.sources : shown.model.targets;
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    let next = step ? column[column.indexOf(node) + step] : null;
    const forward = node.edges[0] || node.gives[0];
    if (event.key === 'ArrowRight' && node.side === 'source' && forward) next = forward.to;
    if (event.key === 'ArrowLeft' && node.side === 'target' && node.edges[0]) next = node.edges[0].from;
    if (!next) return;
    event.preventDefault();
    shown.nodes.get(next).focus();
  }

  // Without a device under the pointer, the selected one keeps its links in front.
  function highlight(node) {
    if (!shown) return;
    const selected = page.state.device === null ? null : shown.model.at.get(page.state.device) || null;
    const lit = node || selected;
    shown.root.classList.toggle('dim', Boolean(lit));
    for (const [edge, element] of shown.links)
      element.classList.toggle('on', Boolean(lit) && (edge.from === lit || edge.to === lit));
    const arrows = lit ? page.handovers.around(lit) : new Set();
    for (const [arrow, element] of shown.arrows) element.classList.toggle('on', arrows.has(arrow));
    const near = new Set();
    if (lit) {
      near.add(lit);
      for (const edge of lit.edges) near.add(edge.from).add(edge.to);
      for (const arrow of arrows) near.add(arrow.from).add(arrow.to);
    }
    for (const [one, element] of shown.nodes) {
      element.classList.toggle('on', near.has(one));
      element.classList.toggle('chosen', one === selected);
      element.setAttribute('aria-pressed', String(one === selected));
    }
  }

  // On a phone the explanation covers the lower half; the device it explains is moved above it.
  page.uncoverDevice = (index, ceiling) => {
    const node = shown && shown.model.at.get(index);
    if (!node) return;
    const frame = shown.nodes.get(node).getBoundingClientRect();
    if (frame.bottom > ceiling || frame.top < 60) window.scrollBy({ top: frame.top - ceiling / 2 });
  };

  page.focusDevice = (index) => {
    const node = shown && shown.model.at.get(index);
    if (node) shown.nodes.get(node).focus();
  };

  page.section('facts', ['plan'], drawFacts);
  page.section('graph', ['plan', 'width'], drawGraph);
  page.section('graph-highlight', ['mark'], () => highlight(null));
})(window.stlfReport);
