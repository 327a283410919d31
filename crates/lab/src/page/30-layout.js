// Who stands where in the fleet's graph: device by device, or in groups when there are too many to read.
(function (page) {
  'use strict';

  const { words } = page;
  const MOST_DEVICES = 120;
  const MOST_LINKS = 300;
  const MOST_ROWS = 60;
  const MOST_EDGES = 500;
  const MOST_COUNTED = 320;

  const isLarge = (plan) => plan.roles.length > MOST_DEVICES || plan.links.length > MOST_LINKS;

  function deviceModel(seed, plan) {
    const mesh = page.mesh(plan);
    const node = (index, side) => ({
      side,
      members: [index],
      device: index,
      label: seed.devices[index] ? seed.devices[index].name : String(index + 1),
      detail: detailOf(seed.devices[index], side),
      brief: seed.devices[index]
        ? words.count(side === 'source' ? seed.devices[index].labeled : seed.devices[index].unlabeled)
        : '',
      pinned: Boolean(seed.devices[index] && seed.devices[index].pin),
      idle: (side === 'source' ? [...mesh.outof[index], ...mesh.handed[index]] : mesh.into[index]).length === 0,
      edges: [],
      gives: [],
      takes: [],
    });
    const sources = mesh.sources.map((index) => node(index, 'source'));
    const targets = mesh.targets.map((index) => node(index, 'target'));
    const at = nodesByDevice(sources, targets);
    const edges = [];
    for (const link of plan.links) {
      const from = at.get(link.from);
      const to = at.get(link.to);
      if (!from || !to) continue;
      const facts = [`weight ${words.percent(link.weight)}`, `divergence ${words.number(link.divergence)}`];
      const title = `${from.label} → ${to.label}: ${facts.join(', ')}, ${words.joules(link.joules)}`;
      edges.push({ from, to, weight: link.weight, divergence: link.divergence, title });
    }
    const arrows = page.handovers.arrowsOf(plan, at);
    return finish({ sources, targets, edges, arrows, at, whole: 1, grouped: false, note: '' });
  }

  function detailOf(device, side) {
    if (!device) return '';
    return side === 'source' ? `${words.count(device.labeled)} labeled` : `${words.count(device.unlabeled)} unlabeled`;
  }

  function nodesByDevice(sources, targets) {
    const at = new Map();
    for (const node of sources.concat(targets)) for (const index of node.members) at.set(index, node);
    return at;
  }

  function groupModel(seed, plan) {
    const mesh = page.mesh(plan);
    const nameOf = (index) => (seed.devices[index] ? seed.devices[index].name : String(index + 1));
    const serving = mesh.sources.filter((index) => mesh.outof[index].length > 0);
    const silent = mesh.sources.filter((index) => mesh.outof[index].length === 0);
    const handing = silent.filter((index) => mesh.handed[index].length > 0);
    const idle = silent.filter((index) => mesh.handed[index].length === 0);
    serving.sort((a, b) => mesh.outof[b].length - mesh.outof[a].length || a - b);
    const own = serving.length > MOST_ROWS ? serving.slice(0, MOST_ROWS - 1) : serving;
    const others = serving.slice(own.length);

    /** @type {any[]} */
    const sources = own.map((index) => ({
      side: 'source',
      members: [index],
      device: index,
      label: nameOf(index),
      detail: `serves ${words.plural(mesh.outof[index].length, 'target')}`,
      brief: `${words.count(mesh.outof[index].length)} served`,
      edges: [],
      gives: [],
      takes: [],
    }));
    if (others.length > 0)
      sources.push(crowd('source', others, words.plural(others.length, 'more source'), 'that serve few targets'));
    if (handing.length > 0)
      sources.push(crowd('source', handing, words.plural(handing.length, 'source'), 'that only hand on'));
    if (idle.length > 0)
      sources.push(
        Object.assign(crowd('source', idle, words.plural(idle.length, 'source'), 'serving no target'), { idle: true }),
      );

    const { groups, bySet } = groupTargets(mesh, new Set(own));
    const targets = groups.map(({ members, name }) => {
      const links = mesh.into[members[0]].length;
      const alone = members.length === 1;
      const detail =
        links === 0
          ? 'without a link'
          : bySet
            ? `of ${words.plural(links, 'source')}`
            : name === null
              ? 'of other sources'
              : `mostly of ${nameOf(name)}`;
      const node = alone
        ? Object.assign(crowd('target', members, nameOf(members[0]), detail), { device: members[0] })
        : crowd('target', members, words.plural(members.length, 'target'), detail);
      node.idle = links === 0;
      node.rest = !bySet && name === null;
      return node;
    });

    const at = nodesByDevice(sources, targets);
    const gathered = new Map();
    for (const link of plan.links) {
      const from = at.get(link.from);
      const to = at.get(link.to);
      if (!from || !to) continue;
      const key = sources.indexOf(from) * targets.length + targets.indexOf(to);
      const edge = gathered.get(key) || { from, to, weight: 0, spread: 0, joules: 0, count: 0 };
      edge.weight += link.weight;
      edge.spread += link.weight * (link.divergence || 0);
      edge.joules += link.joules || 0;
      edge.count += 1;
      gathered.set(key, edge);
    }
    const all = Array.from(gathered.values()).sort((a, b) => b.weight - a.weight);
    const edges = all.slice(0, MOST_EDGES);
    for (const edge of edges) {
      edge.divergence = edge.weight > 0 ? edge.spread / edge.weight : 0;
      const facts = [
        words.plural(edge.count, 'link'),
        `worth ${words.number(edge.weight)} targets`,
        `mean divergence ${words.number(edge.divergence)}`,
        words.joules(edge.joules),
      ];
      edge.title = `${edge.from.label} → ${edge.to.label}: ${facts.join(', ')}`;
    }
    // What is left over may be a crowd beside which every group would look thin.
    const whole = Math.max(1, ...targets.filter((node) => !node.rest).map((node) => node.members.length));
    const how = bySet ? 'by the set of their sources' : 'by their heaviest source';
    const left =
      all.length > edges.length
        ? ` The ${words.count(all.length - edges.length)} thinnest of ${words.count(all.length)} bundles are not drawn.`
        : '';
    const arrows = page.handovers.arrowsOf(plan, at);
    const drawn = arrows.reduce((sum, arrow) => sum + arrow.handovers.length, 0);
    const inside = plan.handovers.length - drawn;
    const hidden =
      inside > 0
        ? ` ${words.plural(inside, 'hand-over')} within a group ${inside === 1 ? 'is' : 'are'} not drawn.`
        : '';
    const joint = plan.handovers.length > 0 ? ', ' : ' and ';
    const many = `${words.plural(plan.roles.length, 'device')}${joint}${words.linkCounts(plan)}`;
    const note = `With ${many}, targets are grouped ${how}. Choose a group to list its devices below.${left}${hidden}`;
    return finish({ sources, targets, edges, arrows, at, whole, grouped: true, note });
  }

  const crowd = (side, members, label, detail) => ({
    side,
    members,
    device: null,
    label,
    detail,
    edges: [],
    gives: [],
    takes: [],
  });

  function groupTargets(mesh, own) {
    const collect = (keyOf) => {
      const found = new Map();
      for (const index of mesh.targets) {
        const key = keyOf(index);
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(index);
      }
      return found;
    };
    const sets = collect((index) =>
      mesh.into[index]
        .map((link) => link.from)
        .sort((a, b) => a - b)
        .join(','),
    );
    if (sets.size <= MOST_ROWS) {
      return { bySet: true, groups: Array.from(sets.values(), (members) => ({ members, name: null })) };
    }
    const mains = collect((index) => {
      if (mesh.into[index].length === 0) return -1;
      const main = mesh.into[index][0].from;
      return own.has(main) ? main : -2;
    });
    return { bySet: false, groups: Array.from(mains, ([key, members]) => ({ members, name: key < 0 ? null : key })) };
  }

  function finish(model) {
    for (const edge of model.edges) {
      edge.from.edges.push(edge);
      edge.to.edges.push(edge);
    }
    untangle(model);
    return model;
  }

  // Barycentre sweeps from both sides, keeping the best order seen: near enough to the fewest crossings, and
  // the same every time.
  function untangle(model) {
    const other = (node, edge) => (edge.from === node ? edge.to : edge.from);
    const rank = (nodes) =>
      nodes.forEach((node, index) => {
        node.rank = nodes.length > 1 ? index / (nodes.length - 1) : 0.5;
      });
    const order = (nodes) => {
      for (const node of nodes) {
        let weight = 0;
        let sum = 0;
        for (const edge of node.edges) {
          const pull = edge.weight * edge.weight + 0.01;
          weight += pull;
          sum += pull * other(node, edge).rank;
        }
        // Devices without a link go below all others.
        node.pull = weight > 0 ? sum / weight : 2;
      }
      nodes.sort((a, b) => a.pull - b.pull || a.members[0] - b.members[0]);
      rank(nodes);
    };
    rank(model.sources);
    rank(model.targets);
    let best = null;
    // Counting pairs of many edges costs more than it tells; there, more sweeps and the last order.
    const countable = model.edges.length <= MOST_COUNTED;
    for (let sweep = 0; sweep < (countable ? 8 : 30); sweep += 1) {
      order(sweep % 2 === 0 ? model.targets : model.sources);
      const crossed = countable ? crossings(model.edges) : -sweep;
      if (!best || crossed < best.crossed)
        best = { crossed, sources: model.sources.slice(), targets: model.targets.slice() };
      if (countable && crossed === 0) break;
    }
    if (best) {
      model.sources = best.sources;
      model.targets = best.targets;
    }
    // A last pass lets those without links sink, which counts no crossing.
    const sink = (nodes) =>
      nodes.filter((node) => node.edges.length > 0).concat(nodes.filter((node) => node.edges.length === 0));
    model.sources = sink(model.sources);
    model.targets = sink(model.targets);
    if (model.arrows.length > 0) model.sources = page.handovers.alongRoutes(model.sources);
  }

  function crossings(edges) {
    let crossed = 0;
    for (let i = 0; i < edges.length; i += 1) {
      for (let j = i + 1; j < edges.length; j += 1) {
        if ((edges[i].from.rank - edges[j].from.rank) * (edges[i].to.rank - edges[j].to.rank) < 0) crossed += 1;
      }
    }
    return crossed;
  }

  // The longer side stands evenly; the shorter stands across from what it is linked to, never closer than `pitch`.
  function place(model, top, bottom, pitch) {
    const sourcesLead = model.sources.length > model.targets.length;
    const lead = sourcesLead ? model.sources : model.targets;
    const follow = sourcesLead ? model.targets : model.sources;
    const room = bottom - top;
    lead.forEach((node, index) => {
      node.y = lead.length > 1 ? top + (room * index) / (lead.length - 1) : top + room / 2;
    });
    for (const node of follow.slice().reverse()) {
      let sum = 0;
      let weight = 0;
      for (const edge of node.edges) {
        weight += edge.weight + 0.05;
        sum += (edge.weight + 0.05) * (edge.from === node ? edge.to : edge.from).y;
      }
      // A source that only hands on stands above who takes its model.
      node.y = weight > 0 ? sum / weight : node.gives.length > 0 ? (node.gives[0].to.y ?? bottom) - pitch : bottom;
    }
    let least = top;
    for (const node of follow) {
      node.y = Math.max(node.y, least);
      least = node.y + pitch;
    }
    let most = bottom;
    for (const node of follow.slice().reverse()) {
      node.y = Math.min(node.y, most);
      most = node.y - pitch;
    }
  }

  page.fleetModel = (seed, plan) => (isLarge(plan) ? groupModel(seed, plan) : deviceModel(seed, plan));
  page.placeFleet = place;
  page.isLargePlan = isLarge;
})(window.stlfReport);
