// Accuracy of every method on every target, and the confusion of classes at them.
(function (page) {
  'use strict';

  const { html, words } = page;
  let chosen = null; // of the confusion: a target's name, or all together

  function drawTargets() {
    const body = page.bodyOf('targets');
    const seed = page.seed();
    if (!seed || seed.targets.length === 0) {
      body.replaceChildren(page.empty('No accuracies were measured on targets.'));
      return;
    }
    const methods = methodsOf(seed);
    const accuracy = (row, method) =>
      row.accuracies && words.known(row.accuracies[method]) ? row.accuracies[method] : null;
    const place = new Map(seed.devices.map((device, index) => [device.name, index]));
    const best = (row) => Math.max(...methods.map(({ method }) => accuracy(row, method) || 0));
    const accuracies = methods.map(({ method, label }) => ({
      key: `m ${method}`,
      name: label,
      numeric: true,
      note: `accuracy of ${label}`,
      value: (row) => accuracy(row, method),
      cell: (row) => share(accuracy(row, method), best(row)),
    }));
    const nameColumn = {
      key: 'name',
      name: 'Target',
      head: true,
      value: (row) => row.name,
      cell: (row) => (place.has(row.name) ? page.deviceOpener(place.get(row.name)) : words.shorten(row.name, 60)),
    };
    const table = page.table({
      label: 'Accuracy per target and method',
      one: 'target',
      tall: true,
      dense: true,
      rows: seed.targets,
      find:
        seed.targets.length > 20
          ? { id: 'target-search', label: 'Find', placeholder: 'name', text: (row) => String(row.name) }
          : null,
      columns: [
        nameColumn,
        // First, because a phone shows little more than the name and one column.
        ...accuracies.slice(0, 1),
        ...(seed.targets.some((row) => row.expected) ? [expectedColumn] : []),
        ...accuracies.slice(1),
        {
          key: 'samples',
          name: 'Samples',
          numeric: true,
          value: (row) => row.samples,
          cell: (row) => words.count(row.samples),
        },
        {
          key: 'links',
          name: 'Links',
          numeric: true,
          value: (row) => row.links,
          cell: (row) => words.count(row.links),
        },
        {
          key: 'joules',
          name: 'Energy',
          numeric: true,
          value: (row) => row.joules,
          cell: (row) => words.joules(row.joules),
        },
      ],
    });
    body.replaceChildren(
      ...page.notEdited(),
      html(
        'p',
        { class: 'lead' },
        `${words.ofSeed('Accuracy in percent')}, the best of each row in bold; links and energy are ST-LF’s. A dash means that it is not a target of that method, or has no model.`,
      ),
      table.element,
      ...(seed.targets.some((row) => row.student) ? [students(seed.targets, nameColumn)] : []),
    );
  }

  // Sentences of their own would push the numbers out of sight.
  function students(targets, nameColumn) {
    const table = page.table({
      label: 'Students of targets',
      one: 'target',
      tall: true,
      rows: targets.filter((row) => row.student),
      columns: [nameColumn, studentColumn, computingColumn],
    });
    return html('details', { class: 'fold' }, html('summary', {}, 'Students of ST-LF’s targets'), table.element);
  }

  const expectedColumn = {
    key: 'expected',
    name: 'Expected',
    numeric: true,
    note: 'accuracy that ST-LF’s target may expect without any label, and its 90 % interval',
    value: (row) => (row.expected ? row.expected[1] : null),
    cell: (row) => {
      if (!row.expected) return words.NONE;
      const [low, middle, high] = row.expected.map((part) => words.fixed(part * 100, 1));
      return `${middle} (${low} to ${high})`;
    },
  };

  const studentColumn = {
    key: 'student',
    prose: true,
    name: 'Student',
    note: 'whether ST-LF’s target uses the student that it trained, and by how much it is more stable than the mixture and was asked to be',
    value: (row) => row.student || null,
    cell: (row) => row.student || words.NONE,
  };

  const computingColumn = {
    key: 'computing',
    name: 'Computing',
    numeric: true,
    note: 'what training the student took, in billions of floating-point operations, and in joules where computing has a price',
    value: (row) => row.student_gflop ?? null,
    cell: (row) => {
      if (row.student_gflop === undefined) return words.NONE;
      const joules = row.student_joules === undefined ? '' : `, ${words.joules(row.student_joules)}`;
      return `${words.fixed(row.student_gflop, 1)} GFLOP${joules}`;
    },
  };

  function share(value, best) {
    const text = value === null ? words.NONE : words.fixed(value * 100, 1);
    return value !== null && value >= best ? html('strong', {}, text) : text;
  }

  // In the order of the summary, which is the order of every other table; then what it does not name.
  function methodsOf(seed) {
    const named = new Map(page.run().summary.map((entry) => [entry.method, entry.label || entry.method]));
    const used = new Set(seed.targets.flatMap((row) => Object.keys(row.accuracies || {})));
    const order = Array.from(named.keys()).filter((method) => used.has(method));
    for (const method of used) if (!named.has(method)) order.push(method);
    return order.map((method) => ({ method, label: named.get(method) || method }));
  }

  function drawConfusion() {
    const body = page.bodyOf('confusion');
    const seed = page.seed();
    if (!seed || seed.confusion.length === 0) {
      body.replaceChildren(page.empty('No confusion of classes was recorded.'));
      return;
    }
    if (!seed.confusion.some((entry) => entry.target === chosen)) chosen = null;
    const select = html(
      'select',
      { id: 'confusion-target' },
      html('option', { value: -1 }, `all ${words.count(seed.confusion.length)} together`),
      ...seed.confusion.map((entry, index) =>
        html('option', { value: index, selected: entry.target === chosen }, words.shorten(entry.target, 50)),
      ),
    );
    const place = html('div');
    const fill = () => place.replaceChildren(...matrix(seed));
    select.addEventListener('change', () => {
      const entry = seed.confusion[Number(select.value)];
      chosen = entry ? entry.target : null;
      fill();
    });
    fill();
    body.replaceChildren(
      ...page.notEdited(),
      html(
        'p',
        { class: 'lead' },
        'Rows: the true class. Columns: what the mixed model said. Shade: fraction of the row.',
      ),
      html('div', { class: 'tools' }, html('label', {}, 'Target ', select)),
      place,
    );
  }

  function countsOf(seed) {
    const entries = chosen === null ? seed.confusion : seed.confusion.filter((entry) => entry.target === chosen);
    const size = Math.max(page.run().classes.length, ...entries.map((entry) => entry.counts.length));
    const sum = Array.from({ length: size }, () => Array.from({ length: size }, () => 0));
    for (const { counts } of entries) {
      counts.forEach((row, y) =>
        row.forEach((count, x) => {
          if (x < size) sum[y][x] += count || 0;
        }),
      );
    }
    return sum;
  }

  function matrix(seed) {
    const counts = countsOf(seed);
    const name = (index) =>
      page.run().classes[index] === undefined ? String(index) : String(page.run().classes[index]);
    const totals = counts.map((row) => row.reduce((sum, count) => sum + count, 0));
    const all = totals.reduce((sum, count) => sum + count, 0);
    const right = counts.reduce((sum, row, index) => sum + row[index], 0);
    const head = html(
      'tr',
      {},
      html('th', { scope: 'col' }, 'true \\ said'),
      ...counts.map((_, index) => html('th', { scope: 'col', class: 'number' }, words.shorten(name(index), 16))),
      html('th', { scope: 'col', class: 'number' }, 'Samples'),
      html('th', { scope: 'col', class: 'number' }, 'Right'),
    );
    const rows = counts.map((row, y) =>
      html(
        'tr',
        {},
        html('th', { scope: 'row' }, words.shorten(name(y), 24)),
        ...row.map((count, x) => cell(count, totals[y], x === y)),
        html('td', { class: 'number' }, words.count(totals[y])),
        html('td', { class: 'number' }, totals[y] > 0 ? words.percent(row[y] / totals[y]) : words.NONE),
      ),
    );
    return [
      html(
        'div',
        { class: 'scroll table', tabindex: '0', role: 'region', 'aria-label': 'Confusion matrix' },
        html(
          'table',
          { class: 'matrix' },
          html('caption', { class: 'unseen' }, 'Confusion matrix'),
          html('thead', {}, head),
          html('tbody', {}, ...rows),
        ),
      ),
      html(
        'p',
        { class: 'quiet' },
        all > 0
          ? `${words.count(right)} of ${words.count(all)} samples right, ${words.percent(right / all)}.`
          : 'No samples were counted.',
      ),
    ];
  }

  // Shades stay light enough (on black: dark enough) for the number on them to be read.
  function cell(count, total, diagonal) {
    const part = total > 0 ? count / total : 0;
    return html(
      'td',
      {
        class: `number${diagonal ? ' right' : ' wrong'}${count === 0 ? ' zero' : ''}`,
        style: part > 0 ? { '--part': `${Math.round(6 + part * 44)}%` } : null,
      },
      words.count(count),
    );
  }

  page.section('targets', ['seed'], drawTargets);
  page.section('confusion', ['seed'], drawConfusion);
})(window.stlfReport);
