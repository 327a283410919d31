// Hand-overs: sources that train on with another source's model, as arrows in the graph and as words beside it.
(function (page) {
  'use strict';

  const { html, svg, words } = page;
  const REACH = 22; // px: how far an arrow to the next source swings out
  const FARTHEST = 110;

  const nameOf = (index) => {
    const device = page.seed().devices[index];
    return device ? device.name : String(index + 1);
  };

  // Whether any plan of the seed has some: legend and columns stay while the slider moves.
  const any = () => page.seed().plans.some((plan) => plan.handovers.length > 0);

  // The sources that a source's model has been at, each once, the source itself last. On a ring it comes back to where it was.
  function routeOf(plan, source) {
    const { taken } = page.mesh(plan);
    const route = [source];
    while (taken[route[0]] && !route.includes(taken[route[0]].from)) route.unshift(taken[route[0]].from);
    return route;
  }

  // Arrows between nodes of the graph; those of groups are bundles, and what stays within a group is not drawn.
  function arrowsOf(plan, at) {
    const found = new Map();
    for (const handover of plan.handovers) {
      const from = at.get(handover.from);
      const to = at.get(handover.to);
      if (!from || !to || from === to) continue;
      const ends = `${from.members[0]} ${to.members[0]}`;
      if (!found.has(ends)) found.set(ends, { from, to, handovers: [] });
      found.get(ends).handovers.push(handover);
    }
    const arrows = Array.from(found.values());
    for (const arrow of arrows) {
      arrow.title = title(arrow);
      arrow.from.gives.push(arrow);
      arrow.to.takes.push(arrow);
    }
    return arrows;
  }

  function title({ from, to, handovers }) {
    const joules = handovers.reduce((sum, one) => sum + (one.joules || 0), 0);
    const facts =
      handovers.length === 1
        ? ['hand-over', `divergence ${words.number(handovers[0].divergence)}`]
        : [words.plural(handovers.length, 'hand-over')];
    return `${from.label} → ${to.label}: ${facts.join(', ')}, ${words.joules(joules)}`;
  }

  // A source stands below the one whose model it takes, so that a route reads downwards.
  function alongRoutes(sources) {
    const placed = new Set();
    const row = [];
    const place = (node) => {
      if (placed.has(node)) return;
      placed.add(node);
      row.push(node);
      for (const arrow of node.gives) place(arrow.to);
    };
    const first = (node, seen) => {
      if (node.takes.length === 0 || seen.has(node)) return node;
      return first(node.takes[0].from, seen.add(node));
    };
    for (const node of sources) place(first(node, new Set()));
    for (const node of sources) place(node);
    return row;
  }

  // Beside the links, which leave a source at its middle, and dashed: they can be told apart without colours.
  function draw(root, model, xSource) {
    const layer = svg('g', { class: 'handovers' });
    const arrows = new Map();
    for (const arrow of model.arrows) {
      const down = arrow.to.y > arrow.from.y ? 1 : -1;
      const y1 = arrow.from.y + 7 * down;
      const y2 = arrow.to.y - 7 * down;
      const x1 = xSource + 4;
      const x2 = xSource + 5;
      const out = Math.min(FARTHEST, REACH + Math.abs(y2 - y1) * 0.35);
      const [start, end] = [y1.toFixed(1), y2.toFixed(1)];
      const path = `M${x1} ${start}C${x1 + out} ${start} ${x2 + out} ${end} ${x2 + 7} ${end}`;
      const element = svg(
        'g',
        { class: 'handover' },
        svg('title', {}, arrow.title),
        svg('path', { class: 'reach', d: path }),
        svg('path', { class: 'way', d: path }),
        svg('path', { class: 'tip', d: tip(x2, y2) }),
      );
      arrows.set(arrow, element);
      layer.append(element);
    }
    root.append(layer);
    return arrows;
  }

  const tip = (x, y) => `M${x} ${y.toFixed(1)}L${x + 8} ${(y - 3.8).toFixed(1)}V${(y + 3.8).toFixed(1)}Z`;

  function key() {
    return html(
      'span',
      { class: 'key' },
      svg(
        'svg',
        { width: 34, height: 16, class: 'handover', 'aria-hidden': 'true' },
        svg('path', { class: 'way', d: 'M33 8H9' }),
        svg('path', { class: 'tip', d: tip(1, 8) }),
      ),
      'hand-over to a source',
    );
  }

  // All arrows on the way of the models that a node has or receives, and those that it hands on.
  function around(node) {
    const lit = new Set(node.gives);
    const waiting = node.side === 'source' ? [node] : node.edges.map((edge) => edge.from);
    const seen = new Set(waiting);
    while (waiting.length > 0) {
      for (const arrow of waiting.pop().takes) {
        lit.add(arrow);
        if (!seen.has(arrow.from)) waiting.push(arrow.from);
        seen.add(arrow.from);
      }
    }
    return lit;
  }

  // For a screen reader: whose model a source trains on, and whom it gives it to.
  function spoken(node) {
    const names = (nodes) => words.some(nodes.map((one) => one.label));
    const parts = [];
    if (node.takes.length > 0)
      parts.push(`, continues training the model of ${names(node.takes.map((arrow) => arrow.from))}`);
    if (node.gives.length > 0) parts.push(`, hands on to ${names(node.gives.map((arrow) => arrow.to))}`);
    return parts.join('');
  }

  // Where a model has been, each source a way to its own explanation.
  function routeLine(route) {
    const stops = route.flatMap((index, at) => [at > 0 ? ' → ' : null, page.deviceOpener(index)]);
    return html('span', { class: 'route' }, ...stops);
  }

  // In a device's panel: whose model a source trains on, over which route it came, and who takes it from there.
  function panel(plan, index) {
    const { taken, handed } = page.mesh(plan);
    const parts = [];
    if (taken[index]) {
      const { from, joules } = taken[index];
      parts.push(
        html('h4', {}, `Continues training the model of ${words.shorten(nameOf(from), 40)}`),
        html('p', {}, 'Route: ', routeLine(routeOf(plan, index)), ` (${words.joules(joules)} for the last hand-over)`),
      );
    }
    if (handed[index] && handed[index].length > 0)
      parts.push(
        ...page.linkTable(`Hands on to ${words.plural(handed[index].length, 'source')}`, handed[index], [
          ['Device', (one) => page.deviceOpener(one.to)],
          ['Divergence', (one) => words.number(one.divergence)],
          ['Energy', (one) => words.joules(one.joules)],
        ]),
      );
    return parts;
  }

  Object.assign(page, { routeOf, routeLine });
  page.handovers = { any, arrowsOf, alongRoutes, draw, key, around, spoken, panel };
})(window.stlfReport);
