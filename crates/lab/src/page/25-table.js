// A table that sorts by its headers and turns its pages: a thousand rows stay quick and stay a real table.
(function (page) {
  'use strict';

  const { html } = page;
  const PAGE = 50;

  // Columns: {key, name, group, value(row) for the order, cell(row) for what is shown, numeric, prose, head, note}.
  // Options: {label, one, many, nothing, tall, dense, columns, rows, sort: {key, down}, mark(row), keep(row), filters,
  // find: {id, label, placeholder, text(row)}}.
  function table(options) {
    const view = {
      sort: options.sort || null,
      first: 0,
      rows: options.rows,
      sought: '',
    };
    const body = html('tbody');
    const headers = new Map();
    const head = html(
      'tr',
      {},
      ...options.columns.map((column) => {
        const cell = html('th', { scope: 'col', class: column.numeric ? 'number' : null });
        if (column.value) {
          cell.append(
            html(
              'button',
              { type: 'button', class: 'sort', title: column.note || null, on: { click: () => sortBy(column) } },
              column.name,
              html('span', { class: 'arrow', 'aria-hidden': 'true' }),
            ),
          );
        } else cell.append(column.name);
        headers.set(column.key, cell);
        return cell;
      }),
    );
    const counter = html('span', { class: 'quiet', role: 'status' });
    const back = html('button', { type: 'button', on: { click: () => turn(-PAGE) } }, 'Previous');
    const on = html('button', { type: 'button', on: { click: () => turn(PAGE) } }, 'Next');
    const pager = html('div', { class: 'pager' }, counter, back, on);
    const whole = html(
      'table',
      {},
      html('caption', { class: 'unseen' }, options.label),
      html('thead', {}, groupHead(options.columns), head),
      body,
    );
    const box = html(
      'div',
      {
        class: 'scroll table' + (options.tall ? ' tall' : '') + (options.dense ? ' dense' : ''),
        tabindex: '0',
        role: 'region',
        'aria-label': options.label,
      },
      whole,
    );
    const tools = html('div', { class: 'tools' });
    const element = html('div', { class: 'listing' }, tools, box, pager);
    if (options.find) tools.append(searchBox());
    for (const filter of options.filters || []) tools.append(filter);
    if (!tools.hasChildNodes()) tools.remove();

    function searchBox() {
      const input = html('input', {
        type: 'search',
        id: options.find.id,
        placeholder: options.find.placeholder || null,
        on: { input: () => seek(input.value) },
      });
      return html('label', {}, options.find.label + ' ', input);
    }

    function seek(text) {
      view.sought = text.trim().toLowerCase();
      view.first = 0;
      draw();
    }

    function sortBy(column) {
      const same = view.sort && view.sort.key === column.key;
      // Numbers are most often wanted largest first.
      view.sort = { key: column.key, down: same ? !view.sort.down : Boolean(column.numeric) };
      view.first = 0;
      draw();
    }

    function turn(by) {
      view.first += by;
      draw();
      box.scrollTop = 0;
    }

    function chosenRows() {
      let rows = view.rows;
      if (view.sought) rows = rows.filter((row) => options.find.text(row).toLowerCase().includes(view.sought));
      if (options.keep) rows = rows.filter(options.keep);
      const column = view.sort && options.columns.find((one) => one.key === view.sort.key);
      if (!column) return rows;
      const keyed = rows.map((row, index) => ({ row, index, value: column.value(row) }));
      keyed.sort((a, b) => compare(a.value, b.value, view.sort.down) || a.index - b.index);
      return keyed.map((one) => one.row);
    }

    function draw() {
      const rows = chosenRows();
      view.first = Math.max(0, Math.min(view.first, Math.floor(Math.max(0, rows.length - 1) / PAGE) * PAGE));
      const shown = rows.slice(view.first, view.first + PAGE);
      for (const column of options.columns) {
        if (!column.value) continue;
        const sorted = view.sort && view.sort.key === column.key;
        headers
          .get(column.key)
          .setAttribute('aria-sort', sorted ? (view.sort.down ? 'descending' : 'ascending') : 'none');
      }
      body.replaceChildren(...shown.map(rowOf));
      if (shown.length === 0) {
        body.append(
          html(
            'tr',
            {},
            html('td', { colspan: options.columns.length, class: 'none' }, options.nothing || 'Nothing here.'),
          ),
        );
      }
      const paged = rows.length > PAGE;
      pager.hidden = !paged && !options.find;
      back.hidden = on.hidden = !paged;
      back.disabled = view.first === 0;
      on.disabled = view.first + PAGE >= rows.length;
      const range = paged
        ? `${page.words.count(view.first + 1)}–${page.words.count(view.first + shown.length)} of `
        : '';
      counter.textContent = range + page.words.plural(rows.length, options.one || 'row', options.many);
    }

    function rowOf(row) {
      const line = html('tr', { class: options.mark ? options.mark(row) : null });
      for (const column of options.columns) {
        const cell = html(
          column.head ? 'th' : 'td',
          { scope: column.head ? 'row' : null, class: column.numeric ? 'number' : column.prose ? 'sentence' : null },
          column.cell(row),
        );
        // Short names stay whole on a phone; long ones may break anywhere.
        if (column.head) cell.classList.add(cell.textContent.length <= 18 ? 'whole' : 'broken');
        line.append(cell);
      }
      return line;
    }

    draw();
    return {
      element,
      redraw(rows) {
        if (rows) view.rows = rows;
        draw();
      },
      fromStart(rows) {
        view.first = 0;
        this.redraw(rows);
      },
      view,
    };
  }

  // Neighbours of one group share a heading above their own.
  function groupHead(columns) {
    if (!columns.some((column) => column.group)) return null;
    const row = html('tr', { class: 'groups' });
    let last = null;
    for (const column of columns) {
      if (last && column.group && column.group === last.group) last.cell.colSpan += 1;
      else {
        last = {
          group: column.group,
          cell: column.group ? html('th', { scope: 'colgroup', colspan: 1 }, column.group) : html('td'),
        };
        row.append(last.cell);
      }
    }
    return row;
  }

  // The unknown comes last, whichever way the known are ordered.
  function compare(a, b, down) {
    const lost = (value) => value === null || value === undefined || Number.isNaN(value);
    if (lost(a) || lost(b)) return Number(lost(a)) - Number(lost(b));
    const order = typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b));
    return down ? -order : order;
  }

  // d2 before d10.
  const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

  page.table = table;
  page.compareNames = (a, b) => collator.compare(a, b);
})(window.stlfReport);
