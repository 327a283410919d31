// The document, what of it is on show, and who redraws when that changes.
(function (page) {
  'use strict';

  // From coarse to fine: a change of one level makes everything below it stale.
  const LEVELS = ['document', 'run', 'seed', 'plan', 'device'];

  const state = { document: null, run: 0, seed: 0, plan: 0, device: null };
  const sections = [];

  const list = (value) => (Array.isArray(value) ? value : []);

  // Parts may be absent in what a server answers; drawing code shall not need to ask each time.
  function completeSeed(seed) {
    return {
      seed: seed.seed,
      edited: false,
      devices: list(seed.devices),
      scale: seed.scale === 'free' ? 'free' : 'unit',
      divergence: seed.divergence && Array.isArray(seed.divergence.values) ? seed.divergence : null,
      plans: list(seed.plans).map(completePlan),
      chosen: Math.min(Math.max(0, seed.chosen || 0), Math.max(0, list(seed.plans).length - 1)),
      hands_on: Boolean(seed.hands_on),
      no_handovers: seed.no_handovers || null,
      traces: list(seed.traces).filter((trace) => list(trace.values).length > 0),
      targets: list(seed.targets),
      confusion: list(seed.confusion),
    };
  }

  function completePlan(plan) {
    return Object.assign({}, plan, {
      weights: plan.weights || {},
      terms: plan.terms || {},
      roles: list(plan.roles),
      links: list(plan.links),
      handovers: list(plan.handovers),
      explanations: Array.isArray(plan.explanations) ? plan.explanations : null,
    });
  }

  function completeRun(run) {
    return {
      name: String(run.name === undefined ? '' : run.name),
      finished: run.finished !== false,
      settings: list(run.settings),
      summary: list(run.summary),
      measuring: run.measuring || null,
      classes: list(run.classes),
      seeds: list(run.seeds).map(completeSeed),
    };
  }

  function completeDocument(given) {
    return {
      title: String(given.title || 'Report'),
      version: given.version || '',
      live: given.live || null,
      runs: list(given.runs).map(completeRun),
    };
  }

  function readEmbedded() {
    return JSON.parse(document.getElementById('data').textContent);
  }

  const run = () => state.document.runs[state.run] || null;
  const seed = () => (run() && run().seeds[state.seed]) || null;
  const plan = () => (seed() && seed().plans[state.plan]) || null;
  const edited = () => Boolean(seed() && seed().edited);
  // A problem or a plan alone has no settings.
  const isRun = () => state.document.runs.some((one) => one.settings.length > 0);

  // `levels`: the levels whose change makes the section stale, or one of the page's own topics.
  function section(name, levels, draw) {
    sections.push({ name, levels, draw });
  }

  function staleLevels(changed) {
    if (!LEVELS.includes(changed)) return [changed];
    return LEVELS.slice(LEVELS.indexOf(changed));
  }

  const waiting = [];
  let scheduled = false;

  // Each section draws in a task of its own, in the order of the page, so that a fleet of a thousand devices
  // never blocks input for long; what is asked for twice before its turn is drawn once.
  function refresh(changed) {
    const levels = staleLevels(changed);
    for (const one of sections) {
      const stale = one.levels.some((level) => levels.includes(level));
      if (stale && !waiting.includes(one)) waiting.push(one);
    }
    waiting.sort((a, b) => sections.indexOf(a) - sections.indexOf(b));
    schedule();
  }

  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    scheduled = false;
    if (waiting.length > 0) drawOne(waiting.shift());
    schedule();
  };

  // What one part of the data lacks shall not take the others from the reader.
  function drawOne(one) {
    try {
      one.draw();
    } catch (error) {
      console.error(error);
      const notice = document.getElementById('notice');
      notice.hidden = false;
      notice.textContent = `A part of this page could not be drawn (${one.name}): ${error.message}`;
    }
  }

  function schedule() {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    channel.port2.postMessage(null);
  }

  // The start draws what is in view first, and as much more as soon fits, before anything is shown, so that
  // nothing jumps; paper needs all.
  function drawNow(milliseconds, atLeast) {
    const end = performance.now() + milliseconds;
    const owed = () => waiting.some((one) => one.name === atLeast);
    while (waiting.length > 0 && (performance.now() < end || owed())) drawOne(waiting.shift());
  }

  function load(given) {
    state.document = completeDocument(given);
    state.run = Math.min(state.run, Math.max(0, state.document.runs.length - 1));
    state.seed = run() && state.seed < run().seeds.length ? state.seed : 0;
    state.plan = seed() ? seed().chosen : 0;
    keepDevice();
    refresh('document');
  }

  // The chosen device stays chosen by its name: another run may number its devices otherwise.
  let chosenName = null;
  function keepDevice() {
    if (state.device === null || !seed()) return;
    const same = seed().devices[state.device];
    if (same && same.name === chosenName) return;
    const index = seed().devices.findIndex((device) => device.name === chosenName);
    state.device = index < 0 ? null : index;
  }

  function show(level, value) {
    if (state[level] === value) return;
    state[level] = value;
    if (level === 'run') state.seed = Math.min(state.seed, Math.max(0, (run() ? run().seeds.length : 1) - 1));
    if (level === 'run' || level === 'seed') state.plan = seed() ? seed().chosen : 0;
    if (level === 'device') chosenName = value === null ? null : seed().devices[value].name;
    else keepDevice();
    refresh(level);
    if (level === 'device') refresh('mark');
  }

  // A live answer holds devices, divergences and one plan; what the run measured (targets, confusion) stays, and is marked as older than
  // the edit. How a solver went on the fleet before the edit, and the plans along the frontier, say nothing of this one.
  function replaceSeed(given) {
    const runs = state.document.runs;
    if (!run()) return;
    const fresh = Object.assign(completeSeed(given), { edited: true });
    let index = run().seeds.findIndex((one) => one.seed === fresh.seed);
    if (index < 0) index = state.seed;
    const old = run().seeds[index];
    if (old) {
      if (!given.targets) fresh.targets = old.targets;
      if (!given.confusion) fresh.confusion = old.confusion;
    }
    runs[state.run].seeds[index] = fresh;
    state.seed = index;
    state.plan = fresh.chosen;
    keepDevice();
    refresh('seed');
  }

  // Divergences share one colour scale over all plans of a seed, so that a colour keeps its meaning while
  // the slider moves.
  const tops = new WeakMap();
  function divergenceTop(of) {
    if (!of) return 1;
    if (tops.has(of)) return tops.get(of);
    let top = 0;
    if (of.divergence) {
      for (const row of of.divergence.values) for (const value of row) if (value > top) top = value;
    }
    for (const one of of.plans) for (const link of one.links) if (link.divergence > top) top = link.divergence;
    top = top > 0 ? Math.ceil(top * 10 - 1e-9) / 10 : 1;
    tops.set(of, top);
    return top;
  }

  // Links and hand-overs by receiver and by sender, once per plan.
  const meshes = new WeakMap();
  function mesh(of) {
    if (meshes.has(of)) return meshes.get(of);
    const into = of.roles.map(() => []);
    const outof = of.roles.map(() => []);
    for (const link of of.links) {
      if (into[link.to]) into[link.to].push(link);
      if (outof[link.from]) outof[link.from].push(link);
    }
    for (const links of into) links.sort((a, b) => b.weight - a.weight);
    const taken = of.roles.map(() => null);
    const handed = of.roles.map(() => []);
    for (const handover of of.handovers) {
      taken[handover.to] = handover;
      if (handed[handover.from]) handed[handover.from].push(handover);
    }
    const sources = [];
    const targets = [];
    of.roles.forEach((role, index) => (role === 'source' ? sources : targets).push(index));
    const found = { into, outof, taken, handed, sources, targets };
    meshes.set(of, found);
    return found;
  }

  Object.assign(page, {
    state,
    run,
    seed,
    plan,
    edited,
    isRun,
    section,
    refresh,
    drawNow,
    load,
    show,
    replaceSeed,
    readEmbedded,
    divergenceTop,
    mesh,
  });
})((window.stlfReport = /** @type {Page} */ ({})));
