// The editing panel of a live page: every change is planned again at once.
(function (page) {
  'use strict';

  const { html, byId, words } = page;
  const PAUSE = 150; // ms: long enough to type a second digit, short enough to feel immediate

  // Always the complete set against the original, as the server wants it.
  const none = () => ({ weights: null, bound: null, handovers: null, devices: new Map(), links: new Map() });
  let edits = none();
  let original = null; // the plan before any edit
  let follows = null; // the seed that the edits are about
  let built = false;

  const NUMBERS = [
    { id: 'edit-labeled', key: 'labeled', name: 'Labeled samples', whole: true },
    { id: 'edit-unlabeled', key: 'unlabeled', name: 'Unlabeled samples', whole: true },
    { id: 'edit-error', key: 'source_error', name: 'Source error', most: 1 },
  ];
  const WEIGHTS = [
    { id: 'phi-s', key: 'source', letter: 'S', name: 'weight of the sources’ error' },
    { id: 'phi-t', key: 'target', letter: 'T', name: 'weight of the targets’ error' },
    { id: 'phi-e', key: 'energy', letter: 'E', name: 'weight of energy' },
  ];
  const LINKS = [
    { id: 'edit-divergence', key: 'divergence', name: 'Divergence', most: 2 },
    { id: 'edit-energy', key: 'energy', name: 'Energy, J' },
  ];

  // A file may have numbers on a scale of its own; then none is too large.
  const most = (field) => (page.seed().scale === 'free' ? undefined : field.most);
  const label = (field) => (most(field) ? `${field.name}, 0 to ${field.most}` : field.name);

  const numeric = (field) =>
    html(
      'label',
      { for: field.id },
      html('span', {}, label(field)),
      html('input', {
        id: field.id,
        type: 'number',
        min: '0',
        max: most(field),
        step: field.whole ? '1' : 'any',
        inputmode: field.whole ? 'numeric' : 'decimal',
      }),
    );
  const choice = (id, caption, ...options) =>
    html(
      'label',
      { for: id },
      html('span', {}, caption),
      html('select', { id }, ...options.map(([value, name]) => html('option', { value }, name))),
    );

  function build() {
    built = true;
    const form = byId('edit');
    form.append(
      html(
        'div',
        { class: 'card-head' },
        html('h3', { id: 'edit-heading' }, 'What if'),
        html('button', { type: 'button', id: 'reset' }, 'Reset'),
      ),
      html(
        'fieldset',
        {},
        html('legend', {}, 'Weights'),
        html(
          'div',
          { class: 'three' },
          ...WEIGHTS.map(({ id, letter, name }) =>
            html(
              'label',
              { for: id, title: name },
              html('span', {}, 'φ', html('sup', {}, letter)),
              html('input', {
                id,
                type: 'number',
                min: '0',
                step: 'any',
                inputmode: 'decimal',
                'aria-label': `φ ${letter}, ${name}`,
              }),
            ),
          ),
        ),
        choice('edit-bound', 'Bound', ['pooled', 'pooled'], ['paper', 'paper']),
        html(
          'label',
          { class: 'tick-box' },
          html('input', { type: 'checkbox', id: 'edit-handovers', 'aria-describedby': 'edit-handovers-reason' }),
          html('span', {}, 'Let sources hand models on'),
        ),
        html('p', { id: 'edit-handovers-reason', class: 'quiet' }),
      ),
      html(
        'fieldset',
        {},
        html('legend', {}, 'Device'),
        choice('edit-device', 'Device'),
        html(
          'div',
          { class: 'two' },
          ...NUMBERS.map(numeric),
          choice('edit-pin', 'Role', ['', 'free'], ['source', 'always source'], ['target', 'always target']),
        ),
      ),
      html(
        'fieldset',
        {},
        html('legend', {}, 'Link'),
        html(
          'div',
          { class: 'two' },
          choice('edit-from', 'From'),
          choice('edit-to', 'To'),
          ...LINKS.map(numeric),
        ),
        html(
          'label',
          { class: 'tick-box' },
          html('input', { type: 'checkbox', id: 'edit-forbidden' }),
          html('span', {}, 'Forbid this link'),
        ),
      ),
      html('ul', { id: 'edit-list', class: 'edits', 'aria-label': 'Edits in force' }),
      // Last and sticky: always in view, and what appears in it pushes no field from under the pointer.
      html(
        'div',
        { class: 'outcome' },
        html('p', { id: 'problem-message', class: 'problem', 'aria-live': 'assertive' }),
        html('p', { id: 'edit-status', class: 'quiet', role: 'status' }, 'Change a value, and the plan is updated.'),
      ),
    );
    form.addEventListener('submit', (event) => event.preventDefault());
    for (const { id } of WEIGHTS) byId(id).addEventListener('input', takeWeights);
    byId('edit-bound').addEventListener('change', takeBound);
    byId('edit-handovers').addEventListener('change', takeHandovers);
    for (const field of NUMBERS) byId(field.id).addEventListener('input', () => takeNumber(field, deviceEntry));
    for (const field of LINKS) byId(field.id).addEventListener('input', () => takeNumber(field, linkEntry));
    byId('edit-pin').addEventListener('change', takePin);
    byId('edit-forbidden').addEventListener('change', takeForbidden);
    for (const id of ['edit-device', 'edit-from', 'edit-to']) byId(id).addEventListener('change', () => fill(true));
    byId('reset').addEventListener('click', reset);
  }

  const device = (id) => page.seed().devices[Number(byId(id).value)] || null;

  function entry(map, key, fresh) {
    if (!map.has(key)) map.set(key, fresh);
    return map.get(key);
  }
  function deviceEntry() {
    const { name } = device('edit-device');
    return entry(edits.devices, name, { name });
  }
  function linkEntry() {
    const from = device('edit-from').name;
    const to = device('edit-to').name;
    return entry(edits.links, JSON.stringify([from, to]), { from, to });
  }

  // An empty field takes the edit back; what is no number is said and kept as typed.
  function readNumber(input, field) {
    if (input.validity.badInput) return complain(input, `${field.name}: this is not a number.`);
    if (input.value.trim() === '') return { clear: true };
    const value = Number(input.value);
    if (!Number.isFinite(value) || value < 0) return complain(input, `${field.name}: must be 0 or more.`);
    if (most(field) && value > field.most) {
      const meant = value / 100 <= field.most ? ` Did you mean ${value / 100}?` : '';
      return complain(input, `${field.name}: must be 0 to ${field.most}.${meant}`);
    }
    if (field.whole && !Number.isInteger(value)) return complain(input, `${field.name}: must be a whole number.`);
    input.removeAttribute('aria-invalid');
    return { value };
  }

  function complain(input, message) {
    input.setAttribute('aria-invalid', 'true');
    problem(message, null);
    return null;
  }

  function takeNumber(field, entryOf) {
    const read = readNumber(byId(field.id), field);
    if (!read) return;
    const target = entryOf();
    if (read.clear) delete target[field.key];
    else target[field.key] = read.value;
    post();
  }

  function takeWeights() {
    const weights = {};
    for (const { id, key, letter } of WEIGHTS) {
      const read = readNumber(byId(id), { name: `φ ${letter}` });
      if (!read) return;
      // What is as it was is no edit.
      if (!read.clear && read.value !== page.tidy(original.weights[key])) weights[key] = read.value;
    }
    edits.weights = Object.keys(weights).length > 0 ? weights : null;
    post();
  }

  function takeBound() {
    edits.bound = byId('edit-bound').value;
    post();
  }

  function takeHandovers() {
    edits.handovers = byId('edit-handovers').checked;
    post();
  }

  function takePin() {
    deviceEntry().pin = byId('edit-pin').value || null;
    post();
  }

  function takeForbidden() {
    const target = linkEntry();
    if (byId('edit-forbidden').checked) target.forbidden = true;
    else delete target.forbidden;
    post();
  }

  function body() {
    const given = {};
    if (edits.weights) given.weights = edits.weights;
    if (edits.bound) given.bound = edits.bound;
    // The paper's bound has none; back under the pooled one, what was asked for holds again.
    if (edits.handovers !== null && edits.bound !== 'paper') given.handovers = edits.handovers;
    const filled = (map, least) => Array.from(map.values()).filter((one) => Object.keys(one).length > least);
    const devices = filled(edits.devices, 1);
    const links = filled(edits.links, 2);
    if (devices.length > 0) given.devices = devices;
    if (links.length > 0) given.links = links;
    if (page.seed()) given.seed = page.seed().seed;
    return given;
  }

  let pause = 0;
  let flight = null;

  // The server plans against the run's own weights; who edits another plan of the sweep means that one's.
  function keepWeights() {
    const shown = page.plan();
    const { plans, chosen } = page.seed();
    if (!edits.weights && plans.length > 1 && page.state.plan !== chosen)
      edits.weights = Object.assign({}, shown.weights);
  }

  function post() {
    clearTimeout(pause);
    keepWeights();
    drawList();
    pause = setTimeout(send, PAUSE);
  }

  // The latest change wins: an answer to an older one is thrown away.
  async function send() {
    if (flight) flight.abort();
    const mine = new AbortController();
    flight = mine;
    byId('edit-status').textContent = 'Planning…';
    try {
      const given = body();
      const edited = Object.keys(given).some((key) => key !== 'seed');
      const answer = await page.ask(edited ? '/api/plan' : '/api/state', edited ? given : undefined, mine.signal);
      if (flight !== mine) return;
      problem('', null);
      if (edited) page.replaceSeed(answer.seed);
      else page.load(answer);
      said();
    } catch (error) {
      if (flight !== mine || error.name === 'AbortError') return;
      problem(error.message, error.hint);
      byId('edit-status').textContent = 'Shown: the last plan that could be made.';
    } finally {
      if (flight === mine) flight = null;
    }
  }

  function said() {
    const plan = page.plan();
    if (!plan) return;
    const change = original && words.known(plan.objective) ? plan.objective - original.objective : null;
    const than =
      change === null || Object.keys(body()).every((key) => key === 'seed')
        ? ''
        : `, ${words.signed(change, (size) => words.number(size))} against no edits`;
    byId('edit-status').textContent = `Objective ${words.number(plan.objective)}${than}; ${words.status(plan)}.`;
  }

  function problem(message, hint) {
    byId('problem-message').replaceChildren(
      ...(message ? [html('strong', {}, message), hint ? html('span', {}, ' ' + hint) : ''] : []),
    );
  }

  async function reset() {
    clearTimeout(pause);
    if (flight) flight.abort();
    const mine = new AbortController();
    flight = mine;
    edits = none();
    problem('', null);
    byId('edit-status').textContent = 'Planning…';
    try {
      await page.ask('/api/plan', {}, mine.signal);
      const whole = await page.ask('/api/state', undefined, mine.signal);
      if (flight !== mine) return;
      page.load(whole);
      for (const input of byId('edit').querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid');
      fill(true);
      byId('edit-status').textContent = 'Back to the plan before any edit.';
    } catch (error) {
      if (error.name !== 'AbortError') problem(error.message, error.hint);
    } finally {
      if (flight === mine) flight = null;
    }
  }

  // Another seed is another fleet: edits of the one say nothing about the other.
  function follow() {
    const seed = page.seed() ? page.seed().seed : null;
    if (seed === follows) return;
    follows = seed;
    original = null;
    edits = none();
  }

  page.editing = {
    build: () => built || build(),
    follow,
    body,
    edits: () => edits,
    post,
    setOriginal: (plan) => {
      original = plan;
    },
    original: () => original,
  };
  Object.assign(page.editing, { WEIGHTS, NUMBERS, LINKS, device });
  const fill = (all) => page.fillEditing(all);
  const drawList = () => page.listEdits();
})(window.stlfReport);
