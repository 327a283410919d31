// The settings of the run; with two runs, side by side and with a mark where they differ.
(function (page) {
  'use strict';

  const { html, words } = page;

  function draw() {
    const body = page.bodyOf('settings');
    const runs = page.state.document.runs;
    const sections = gather(runs);
    if (sections.length === 0) {
      body.replaceChildren(page.empty('No settings were recorded.'));
      return;
    }
    const two = runs.length > 1;
    const differing = sections.reduce((sum, section) => sum + section.rows.filter(differs).length, 0);
    const lead = two ? compared(differing) : 'As in the run’s config.toml.';
    const head = html(
      'tr',
      {},
      html('th', { scope: 'col' }, 'Setting'),
      ...(two
        ? runs.map((run) => html('th', { scope: 'col' }, words.shorten(run.name, 40)))
        : [html('th', { scope: 'col' }, 'Value')]),
    );
    const groups = sections.map((section) =>
      html(
        'tbody',
        {},
        section.name
          ? html('tr', { class: 'group' }, html('th', { scope: 'rowgroup', colspan: two ? 3 : 2 }, section.name))
          : null,
        ...section.rows.map((row) => line(row, two)),
      ),
    );
    body.replaceChildren(
      html('p', { class: 'lead' }, lead),
      html(
        'div',
        { class: 'scroll table', tabindex: '0', role: 'region', 'aria-label': 'All settings' },
        html(
          'table',
          { class: 'settings' },
          html('caption', { class: 'unseen' }, 'Settings'),
          html('thead', {}, head),
          ...groups,
        ),
      ),
    );
  }

  function compared(differing) {
    if (differing === 0) return 'Both runs have the same settings.';
    return `${words.plural(differing, 'setting')} differ${differing === 1 ? 's' : ''} between the runs, marked with ≠.`;
  }

  function line(row, two) {
    const marked = two && differs(row);
    const name = html(
      'th',
      { scope: 'row' },
      row.key,
      marked ? html('span', { class: 'differs', title: 'differs between the runs' }, ' ≠') : null,
    );
    const values = two ? [0, 1] : [0];
    return html(
      'tr',
      { class: marked ? 'differ' : null },
      name,
      ...values.map((at) =>
        html(
          'td',
          {},
          row.values[at] === undefined ? html('span', { class: 'quiet' }, 'not set') : html('code', {}, row.values[at]),
        ),
      ),
    );
  }

  const differs = (row) => row.values[0] !== row.values[1];

  // Sections and keys in the order of the first run; what only the second has follows.
  function gather(runs) {
    const sections = new Map();
    runs.forEach((run, at) => {
      for (const { section, keys } of run.settings) {
        const name = String(section || '');
        if (!sections.has(name)) sections.set(name, new Map());
        const rows = sections.get(name);
        for (const [key, value] of keys || []) {
          if (!rows.has(key)) rows.set(key, { key, values: [] });
          rows.get(key).values[at] = String(value);
        }
      }
    });
    return Array.from(sections, ([name, rows]) => ({ name, rows: Array.from(rows.values()) }));
  }

  page.section('settings', ['document'], draw);
})(window.stlfReport);
