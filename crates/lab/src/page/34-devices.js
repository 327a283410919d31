// Every device in a list to search and sort: the way through a fleet too large to draw.
(function (page) {
  'use strict';

  const { html, byId, words } = page;
  let listing = null;
  let group = null; // {members: Set, name}

  function rowsOf(seed, plan) {
    const mesh = page.mesh(plan);
    return seed.devices.map((device, index) => {
      const role = plan.roles[index] || '';
      const links = role === 'source' ? mesh.outof[index] || [] : mesh.into[index] || [];
      const taken = mesh.taken[index] || null;
      const received = taken ? [taken] : mesh.into[index] || [];
      const joules = received.reduce((sum, one) => sum + (one.joules || 0), 0);
      return { index, device, role, links, taken, joules: role === 'target' || taken ? joules : null };
    });
  }

  function draw() {
    const box = byId('devices');
    const seed = page.seed();
    const plan = page.plan();
    if (!plan) {
      listing = null;
      return box.replaceChildren();
    }
    const rows = rowsOf(seed, plan);
    // The list keeps its search, order and page while plans change.
    if (listing && listing.fleet === fleetName()) return listing.table.redraw(rows);
    group = null;
    listing = { fleet: fleetName(), table: build(rows), element: null };
    const large = page.isLargePlan(plan);
    listing.element = html(
      'details',
      { class: 'fold', open: large },
      html('summary', {}, 'All devices'),
      listing.table.element,
    );
    return box.replaceChildren(listing.element);
  }

  const fleetName = () =>
    `${page.state.run} ${page.state.seed} ${page.seed().devices.length} ${page.handovers.any()}`;

  function build(rows) {
    const role = html(
      'select',
      { id: 'device-role', on: { change: () => listing.table.fromStart() } },
      html('option', { value: '' }, 'all'),
      html('option', { value: 'source' }, 'sources'),
      html('option', { value: 'target' }, 'targets'),
    );
    const chip = html('button', {
      type: 'button',
      class: 'chip',
      hidden: true,
      title: 'Show all devices again',
      on: { click: () => only(null) },
    });
    const table = page.table({
      label: 'Devices of the fleet',
      one: 'device',
      nothing: 'No device matches.',
      tall: true,
      rows,
      find: { id: 'device-search', label: 'Find', placeholder: 'name', text: (row) => String(row.device.name) },
      filters: [html('label', {}, 'Role ', role), chip],
      keep: (row) => (!role.value || row.role === role.value) && (!group || group.members.has(row.index)),
      mark: (row) => (row.index === page.state.device ? 'chosen' : null),
      columns: [
        { key: 'name', name: 'Device', head: true, value: (row) => row.device.name, cell: (row) => opener(row.index) },
        { key: 'role', name: 'Role', value: (row) => row.role, cell: (row) => roleMark(row) },
        {
          key: 'labeled',
          name: 'Labeled',
          numeric: true,
          value: (row) => row.device.labeled,
          cell: (row) => words.count(row.device.labeled),
        },
        {
          key: 'unlabeled',
          name: 'Unlabeled',
          numeric: true,
          value: (row) => row.device.unlabeled,
          cell: (row) => words.count(row.device.unlabeled),
        },
        {
          key: 'error',
          name: 'Source error',
          numeric: true,
          value: (row) => row.device.source_error,
          cell: (row) => words.number(row.device.source_error),
        },
        {
          key: 'links',
          name: 'Links',
          numeric: true,
          value: (row) => row.links.length,
          cell: (row) => words.count(row.links.length),
        },
        ...(page.handovers.any() ? [modelColumn()] : []),
        {
          key: 'joules',
          name: 'Energy received',
          numeric: true,
          value: (row) => row.joules,
          cell: (row) => (row.joules === null ? words.NONE : words.joules(row.joules)),
        },
      ],
    });
    table.chip = chip;
    return table;
  }

  const modelColumn = () => ({
    key: 'taken',
    name: 'Continues training',
    value: (row) => (row.taken ? page.seed().devices[row.taken.from].name : null),
    cell: (row) => (row.taken ? opener(row.taken.from) : words.NONE),
  });

  function roleMark(row) {
    const pin = row.device.pin ? ', pinned' : '';
    return html('span', { class: `role ${row.role}` }, (row.role || 'unknown') + pin);
  }

  function opener(index) {
    const name = page.seed().devices[index] ? page.seed().devices[index].name : String(index + 1);
    return html(
      'button',
      { type: 'button', class: 'plain', title: name, on: { click: () => page.explain(index) } },
      words.shorten(name, 60),
    );
  }

  function only(chosen) {
    group = chosen;
    listing.table.chip.hidden = !chosen;
    listing.table.chip.textContent = chosen ? `${words.shorten(chosen.name, 40)}  ×` : '';
    listing.table.fromStart();
  }

  page.listDevices = (members, name) => {
    if (!listing) return;
    listing.element.open = true;
    only({ members: new Set(members), name });
    const calm = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    listing.element.scrollIntoView({ block: 'nearest', behavior: calm ? 'auto' : 'smooth' });
  };
  page.deviceOpener = opener;

  page.section('devices', ['plan'], draw);
  page.section('devices-mark', ['mark'], () => listing && listing.table.redraw());
})(window.stlfReport);
