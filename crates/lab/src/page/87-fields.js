// What the fields of the editing panel show: the edit where there is one, else what was planned with.
(function (page) {
  'use strict';

  const { html, byId, words, editing } = page;
  let names = '';

  function draw() {
    const live = Boolean(page.state.document.live);
    const plan = page.plan();
    const form = byId('edit');
    form.hidden = !live || !plan || !page.run().finished;
    byId('fleet').classList.toggle('live', !form.hidden);
    if (form.hidden) return;
    editing.build();
    editing.follow();
    if (editing.original() === null) editing.setOriginal(page.seed().plans[page.seed().chosen]);
    listDevices();
    fill(false);
    list();
  }

  function listDevices() {
    const devices = page.seed().devices;
    const now = JSON.stringify(devices.map((device) => device.name));
    if (now === names) return;
    names = now;
    for (const id of ['edit-device', 'edit-from', 'edit-to']) {
      byId(id).replaceChildren(
        ...devices.map((device, index) => html('option', { value: index }, words.shorten(device.name, 40))),
      );
    }
    const first = page.plan().links[0];
    byId('edit-device').value = '0';
    byId('edit-from').value = String(first ? first.from : 0);
    byId('edit-to').value = String(first ? first.to : Math.min(1, devices.length - 1));
  }

  // The field being typed in is left alone unless `all`.
  function put(id, value, all) {
    const input = byId(id);
    if (!all && (input === document.activeElement || input.getAttribute('aria-invalid'))) return;
    const text = value === null || value === undefined ? '' : String(value);
    if (input.value !== text) input.value = text;
    input.removeAttribute('aria-invalid');
  }

  // Eight digits: what a person may want to change, without the tail of binary fractions.
  const tidy = (value) => (words.known(value) ? Number(value.toPrecision(8)) : null);
  const either = (edit, planned) => (edit === undefined || edit === null ? tidy(planned) : edit);

  function fill(all) {
    const seed = page.seed();
    const plan = page.plan();
    if (!seed || !plan) return;
    const edits = editing.edits();
    for (const { id, key } of editing.WEIGHTS)
      put(id, either(edits.weights && edits.weights[key], plan.weights[key]), all);
    put('edit-bound', edits.bound || plan.bound || 'pooled', all);
    fillHandovers(seed, edits);
    const device = editing.device('edit-device');
    if (device) {
      const edit = edits.devices.get(device.name) || {};
      for (const { id, key } of editing.NUMBERS) put(id, either(edit[key], device[key]), all);
      put('edit-pin', edit.pin === undefined ? device.pin || '' : edit.pin || '', all);
    }
    fillLink(seed, plan, edits, all);
  }

  function fillHandovers(seed, edits) {
    const box = byId('edit-handovers');
    box.disabled = Boolean(seed.no_handovers);
    box.checked = !box.disabled && (edits.handovers === null ? seed.hands_on : edits.handovers);
    byId('edit-handovers-reason').textContent = box.disabled ? `No hand-overs: ${seed.no_handovers}.` : '';
  }

  function fillLink(seed, plan, edits, all) {
    const from = Number(byId('edit-from').value);
    const to = Number(byId('edit-to').value);
    const self = from === to;
    for (const id of ['edit-divergence', 'edit-energy', 'edit-forbidden']) byId(id).disabled = self;
    const edit =
      edits.links.get(JSON.stringify([seed.devices[from], seed.devices[to]].map((one) => one && one.name))) || {};
    const used = plan.links.concat(plan.handovers).find((link) => link.from === from && link.to === to);
    const matrix = seed.divergence && seed.divergence.values[from];
    const divergence = matrix && words.known(matrix[to]) ? matrix[to] : used && used.divergence;
    put('edit-divergence', self ? null : either(edit.divergence, divergence), all);
    put('edit-energy', self ? null : either(edit.energy, used && used.joules), all);
    byId('edit-energy').placeholder = self || used ? '' : 'as measured';
    byId('edit-forbidden').checked = Boolean(edit.forbidden);
  }

  // A device chosen in the graph is the one to edit; its heaviest link or its hand-over too.
  function follow() {
    const index = page.state.device;
    if (index === null || byId('edit').hidden) return;
    byId('edit-device').value = String(index);
    const mesh = page.mesh(page.plan());
    const [link] = [mesh.into[index], mesh.outof[index], mesh.taken[index] || [], mesh.handed[index]].flat();
    if (link) {
      byId('edit-from').value = String(link.from);
      byId('edit-to').value = String(link.to);
    }
    fill(true);
  }

  function list() {
    const given = editing.body();
    const edits = editing.edits();
    const lines = [];
    const line = (text, undo) =>
      lines.push(
        html(
          'li',
          {},
          html('span', {}, text),
          html(
            'button',
            {
              type: 'button',
              class: 'close',
              'aria-label': `Undo: ${text}`,
              on: {
                click: () => {
                  undo();
                  fill(true);
                  editing.post();
                },
              },
            },
            '×',
          ),
        ),
      );
    if (given.weights)
      line(
        editing.WEIGHTS.filter(({ key }) => key in given.weights)
          .map(({ key, letter }) => `φ${letter} ${given.weights[key]}`)
          .join(', '),
        () => {
          edits.weights = null;
        },
      );
    if (given.bound)
      line(`bound ${given.bound}`, () => {
        edits.bound = null;
      });
    if ('handovers' in given)
      line(given.handovers ? 'hand-overs' : 'no hand-overs', () => {
        edits.handovers = null;
      });
    for (const [key, edit] of edits.devices)
      if (Object.keys(edit).length > 1)
        line(`${words.shorten(key, 30)}: ${fieldsOf(edit, ['name'])}`, () => edits.devices.delete(key));
    for (const [key, edit] of edits.links)
      if (Object.keys(edit).length > 2)
        line(`${route(edit)}: ${fieldsOf(edit, ['from', 'to'])}`, () => edits.links.delete(key));
    byId('edit-list').replaceChildren(...lines);
  }

  const route = ({ from, to }) => `${words.shorten(from, 20)} → ${words.shorten(to, 20)}`;

  function fieldsOf(edit, without) {
    const word = { source_error: 'source error', pin: 'role' };
    return Object.entries(edit)
      .filter(([key]) => !without.includes(key))
      .map(([key, value]) =>
        key === 'forbidden' ? 'forbidden' : `${word[key] || key} ${value === null ? 'free' : value}`,
      )
      .join(', ');
  }

  page.fillEditing = fill;
  page.tidy = tidy;
  page.listEdits = list;
  page.section('edit', ['plan'], draw);
  page.section(
    'edit-follow',
    ['mark'],
    () => page.state.device !== null && !byId('edit').contains(document.activeElement) && follow(),
  );
})(window.stlfReport);
