// Title, notices, and the choice of run, seed and plan. Drawn before all else: the slider above the graph would
// push the graph down if it came later.
(function (page) {
  'use strict';

  const { html, byId, words } = page;

  function drawHead() {
    const { document: shown } = page.state;
    const run = page.run();
    const seed = page.seed();
    document.title = shown.title;
    byId('title').textContent = shown.title;
    byId('title').title = shown.title;
    const parts = [];
    if (shown.runs.length > 1)
      parts.push(`comparing ${shown.runs.map((one) => words.shorten(one.name, 40)).join(' with ')}`);
    else if (run && run.name !== shown.title) parts.push(words.shorten(run.name, 60));
    if (seed) parts.push(words.plural(seed.devices.length, 'device'));
    if (run && run.seeds.length > 1) parts.push(words.plural(run.seeds.length, 'seed'));
    if (page.plan()) parts.push(`${page.plan().bound || 'unknown'} bound`);
    byId('subtitle').textContent = parts.join(' · ');
    byId('colophon').textContent =
      `Made by stlf ${shown.version}.${shown.live ? '' : ' This page holds its data and needs no network.'}`;
  }

  function drawChoices() {
    const { runs } = page.state.document;
    const seeds = page.run() ? page.run().seeds : [];
    byId('run-choice').hidden = runs.length < 2;
    byId('seed-choice').hidden = seeds.length < 2;
    options(
      byId('run'),
      runs.map((run) => words.shorten(run.name, 40)),
      page.state.run,
    );
    options(
      byId('seed'),
      seeds.map((seed) => String(seed.seed)),
      page.state.seed,
    );
  }

  function options(select, names, chosen) {
    select.replaceChildren(
      ...names.map((name, index) => html('option', { value: index, selected: index === chosen }, name)),
    );
    select.value = String(chosen);
  }

  const namesOf = (runs) => runs.map((run) => words.shorten(run.name, 40)).join(' and ');

  // Long lists are cut: the explanation of each device says it too.
  const MOST_NAMES = 5;
  const fewNames = (devices) => {
    const more = devices.length - MOST_NAMES;
    const names = devices.slice(0, MOST_NAMES).map((device) => words.shorten(device.name, 40));
    return names.join(', ') + (more > 0 ? ` and ${words.count(more)} more` : '');
  };

  function drawNotice() {
    const { runs, live } = page.state.document;
    const said = [];
    if (runs.length === 0) said.push('There is no run in this report.');
    const open = runs.filter((run) => !run.finished);
    if (open.length > 0 && !live)
      said.push(
        `${namesOf(open)} ${open.length === 1 ? 'was' : 'were'} not finished when this page was made; what was there is shown.`,
      );
    const bare = runs.filter((run) => run.seeds.length === 0);
    if (bare.length > 0 && !(live && open.length > 0))
      said.push(`${namesOf(bare)} ${bare.length === 1 ? 'has' : 'have'} no seed with a plan yet.`);
    const seed = page.seed();
    const guessing = seed ? seed.devices.filter((device) => device.guessing) : [];
    if (guessing.length > 0)
      said.push(
        `The ${guessing.length === 1 ? 'model' : 'models'} that ${fewNames(guessing)} trained ${guessing.length === 1 ? 'is' : 'are'} no better than guessing: look at the labels and features there.`,
      );
    if (page.edited())
      said.push(
        page.isRun()
          ? 'With your edits: fleet and divergence. Without them, as the run was: methods, targets, confusion and settings. Reset brings back the rest.'
          : 'With your edits: fleet and divergence. Reset brings back the rest.',
      );
    byId('notice').hidden = said.length === 0;
    byId('notice').textContent = said.join(' ');
  }

  // Two sliders along the plans of a sweep, one above the graph and one at the frontier, always in step.
  const sliders = () => [
    ['plan-slider', 'plan-name'],
    ['fleet-slider', 'fleet-plan-name'],
  ];

  function drawSliders() {
    const seed = page.seed();
    const many = Boolean(seed) && seed.plans.length > 1;
    byId('fleet-plan').hidden = !many;
    byId('frontier-plan').hidden = !many;
    if (!many) return;
    const plan = page.plan();
    const line = words.planLine(plan);
    for (const [slider, output] of sliders()) {
      const input = byId(slider);
      input.max = seed.plans.length - 1;
      input.value = page.state.plan;
      input.setAttribute('aria-valuetext', `Plan ${page.state.plan + 1} of ${seed.plans.length}: ${line}`);
      byId(output).textContent = `${page.state.plan + 1} of ${seed.plans.length} · ${line}`;
    }
  }

  // A problem alone has nothing to say about runs, and a fleet that is too large none about solvers: what would be empty is left out.
  function drawParts() {
    const seed = page.seed();
    const run = page.isRun();
    const parts = {
      objective: run || page.edited() || Boolean(seed && seed.traces.length > 0),
      methods: run || page.state.document.runs.length > 1,
      frontier: page.edited() || Boolean(seed && seed.plans.length > 1),
      targets: run,
      confusion: run,
      settings: run,
    };
    for (const [id, there] of Object.entries(parts)) {
      byId(id).hidden = !there;
      document.querySelector(`nav a[href="#${id}"]`).parentElement.hidden = !there;
    }
  }

  // What a section says in place of numbers that an edit has made untrue, or above numbers that are older than the edit.
  page.notEdited = () =>
    page.edited() ? [html('p', { class: 'notice older' }, 'Of the run as it was, without your edits.')] : [];
  page.notComputed = () => page.empty('This is not computed for an edited fleet. Reset brings back what was there.');

  page.listenToSliders = () => {
    for (const [slider] of sliders()) {
      const input = byId(slider);
      input.addEventListener('input', () => page.show('plan', Number(input.value)));
    }
  };

  page.section('head', ['plan'], drawHead);
  page.section('choices', ['seed'], drawChoices);
  page.section('notice', ['seed'], drawNotice);
  page.section('parts', ['seed'], drawParts);
  page.section('sliders', ['plan'], drawSliders);
})(window.stlfReport);
