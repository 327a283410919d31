// Two runs against each other: differences by method, and the devices whose role is not the same.
(function (page) {
  'use strict';

  const { html, words } = page;

  function comparisonTable(methods) {
    const [first, second] = page.state.document.runs;
    const names = [first, second].map((run) => words.shorten(run.name, 24));
    const value = (one, at, key) => (one.entries[at] ? page.meanOf(one.entries[at][key]) : null);
    const change = (one, key) => {
      const was = value(one, 0, key);
      const is = value(one, 1, key);
      return was === null || is === null ? null : is - was;
    };
    /** @type {any[]} */
    const columns = [{ key: 'label', name: 'Method', head: true, value: (one) => one.label, cell: (one) => one.label }];
    const measure = (key, name, cell, write, note) => {
      [0, 1].forEach((at) =>
        columns.push({
          key: key + at,
          group: name,
          name: names[at],
          numeric: true,
          value: (one) => value(one, at, key),
          cell: (one) => (one.entries[at] ? cell(one.entries[at][key], one.entries[at]) : words.NONE),
        }),
      );
      columns.push({
        key: key + 'change',
        group: name,
        name: 'Change',
        note,
        numeric: true,
        value: (one) => change(one, key),
        cell: (one) => difference(change(one, key), write, key),
      });
    };
    measure(
      'accuracy',
      'Accuracy',
      (spread, entry) =>
        spread ? words.meanWithin(spread, 100, 1) + ' %' : page.meanOf(entry.links) > 0 ? 'not known' : 'no model',
      (size) => words.fixed(size * 100, 1) + ' points',
      'second run minus first, in percentage points',
    );
    measure('joules', 'Energy', (spread) => words.joules(page.meanOf(spread)), words.joules, 'second run minus first');
    measure(
      'links',
      'Links',
      (spread) => words.meanWithin(spread, 1, 1),
      (size) => words.fixed(size, 1),
      'second run minus first',
    );
    const table = page.table({
      label: `Methods of ${first.name} and ${second.name}`,
      one: 'method',
      rows: methods,
      mark: (one) => (page.ours.includes(one.method) ? 'ours' : null),
      columns,
    });
    return table.element;
  }

  // More accuracy is good, more energy is not; the sign says it too, not the colour alone.
  function difference(size, write, key) {
    const text = words.signed(size, write);
    if (size === null || !/[+−]/.test(text)) return text;
    const good = key === 'accuracy' ? size > 0 : size < 0;
    return html('span', { class: good ? 'better' : 'worse' }, text);
  }

  // The same seed of both where there is one; devices are matched by name.
  function roleDifferences() {
    const runs = page.state.document.runs;
    const here = page.seed();
    const heading = html('h3', {}, 'Roles that differ');
    const pair = runs.map((run) => (here && run.seeds.find((one) => one.seed === here.seed)) || run.seeds[0]);
    if (!pair[0] || !pair[1] || !pair[0].plans.length || !pair[1].plans.length) {
      return [heading, page.empty('One of the runs has no plan yet.')];
    }
    const [first, second] = pair.map((seed) => {
      const plan = seed.plans[seed.chosen];
      return new Map(seed.devices.map((device, index) => [device.name, plan.roles[index]]));
    });
    const rows = [];
    let lone = 0;
    for (const [name, role] of first) {
      if (!second.has(name)) lone += 1;
      else if (second.get(name) !== role) rows.push({ name, was: role, is: second.get(name) });
    }
    for (const name of second.keys()) if (!first.has(name)) lone += 1;
    const same =
      pair[0].seed === pair[1].seed ? ` in seed ${pair[0].seed}` : ` in seeds ${pair[0].seed} and ${pair[1].seed}`;
    const said = [
      rows.length === 0
        ? `Every device in both runs has the same role${same}.`
        : `${words.plural(rows.length, 'device')} of ${words.count(first.size)} changed role${same}.`,
    ];
    if (lone > 0) said.push(`${words.plural(lone, 'device')} ${lone === 1 ? 'is' : 'are'} in one run only.`);
    const parts = [heading, html('p', { class: 'lead' }, said.join(' '))];
    if (rows.length > 0) {
      const role = (name) => html('span', { class: `role ${name}` }, name);
      parts.push(
        page.table({
          label: 'Devices whose role differs between the runs',
          one: 'device',
          tall: true,
          rows,
          columns: [
            {
              key: 'name',
              name: 'Device',
              head: true,
              value: (row) => row.name,
              cell: (row) => words.shorten(row.name, 60),
            },
            {
              key: 'was',
              name: words.shorten(runs[0].name, 30),
              value: (row) => row.was,
              cell: (row) => role(row.was),
            },
            { key: 'is', name: words.shorten(runs[1].name, 30), value: (row) => row.is, cell: (row) => role(row.is) },
          ],
        }).element,
      );
    }
    return parts;
  }

  page.comparisonTable = comparisonTable;
  page.roleDifferences = roleDifferences;
})(window.stlfReport);
