// Why a device is what it is: the panel beside the graph.
(function (page) {
  'use strict';

  const { html, byId, words } = page;
  let opener = null;

  function draw() {
    const panel = byId('explanation');
    const seed = page.seed();
    const plan = page.plan();
    const index = page.state.device;
    const device = seed && index !== null ? seed.devices[index] : null;
    panel.classList.toggle('open', Boolean(device));
    if (!device || !plan) {
      panel.replaceChildren(
        html('h3', {}, 'Explanation'),
        html(
          'p',
          { class: 'quiet' },
          plan
            ? 'Choose a device to see why it is a source or a target, and what would change that.'
            : 'There is no plan to explain yet.',
        ),
      );
      return;
    }
    const focused =
      panel.contains(document.activeElement) && document.activeElement.getAttribute('data-close') !== null;
    const close = html(
      'button',
      { type: 'button', class: 'close', 'data-close': '', 'aria-label': 'Close the explanation', on: { click: shut } },
      '×',
    );
    panel.replaceChildren(
      html('div', { class: 'card-head' }, html('h3', {}, device.name), close),
      html(
        'p',
        {},
        html('span', { class: `role ${plan.roles[index]}` }, plan.roles[index] || 'unknown'),
        device.pin ? html('span', { class: 'quiet' }, ` pinned as ${device.pin}`) : null,
      ),
      html('dl', { class: 'pairs' }, ...pairs(device)),
      ...(device.guessing ? [html('p', {}, `Trouble: ${device.guessing}.`)] : []),
      ...page.handovers.panel(plan, index),
      ...linkList(plan, index),
      ...prose(plan.explanations && plan.explanations[index]),
      ...further(plan, device),
    );
    if (focused) close.focus({ preventScroll: true });
    if (getComputedStyle(panel).position === 'fixed') page.uncoverDevice(index, panel.getBoundingClientRect().top);
  }

  function pairs(device) {
    const rows = [
      ['labeled', `${words.count(device.labeled)} samples`],
      ['unlabeled', `${words.count(device.unlabeled)} samples`],
      ['source error', words.known(device.source_error) ? words.number(device.source_error) : 'not measured'],
    ];
    if (device.eligible === false) rows.push(['may be a source', 'no']);
    return rows.flatMap(([name, value]) => [html('dt', {}, name), html('dd', {}, value)]);
  }

  function linkList(plan, index) {
    const mesh = page.mesh(plan);
    const source = plan.roles[index] === 'source';
    const links = (source ? mesh.outof : mesh.into)[index] || [];
    if (links.length === 0)
      return [html('p', { class: 'quiet' }, source ? 'It serves no target.' : 'It receives no model.')];
    const heading = source
      ? `Sends to ${words.plural(links.length, 'target')}`
      : `Receives from ${words.plural(links.length, 'source')}`;
    const columns = [
      ['Device', (link) => page.deviceOpener(source ? link.to : link.from)],
      ['Weight', (link) => words.percent(link.weight)],
      ['Divergence', (link) => words.number(link.divergence)],
      ['Energy', (link) => words.joules(link.joules)],
    ];
    const routes = source ? [] : links.slice(0, MOST).map((link) => page.routeOf(plan, link.from));
    return [
      ...linkTable(heading, links, columns),
      ...routes
        .filter((route) => route.length > 1)
        .map((route) => html('p', {}, 'Route of its model: ', page.routeLine(route))),
    ];
  }

  // Long lists are cut: a source of a large fleet may serve hundreds.
  const MOST = 30;
  function linkTable(heading, links, columns) {
    const rows = links.slice(0, MOST).map((link) =>
      html(
        'tr',
        {},
        ...columns.map(([, cell], at) =>
          at === 0 ? html('th', { scope: 'row' }, cell(link)) : html('td', { class: 'number' }, cell(link)),
        ),
      ),
    );
    const head = columns.map(([name], at) => html('th', { scope: 'col', class: at > 0 ? 'number' : null }, name));
    const rest =
      links.length > MOST ? html('p', { class: 'quiet' }, `and ${words.count(links.length - MOST)} more`) : null;
    return [
      html('h4', {}, heading),
      html(
        'div',
        { class: 'scroll table' },
        html('table', { class: 'small' }, html('thead', {}, html('tr', {}, ...head)), html('tbody', {}, ...rows)),
      ),
      rest,
    ].filter(Boolean);
  }

  // Lines set in columns keep their columns; sentences flow.
  function prose(text) {
    if (!text) return [];
    const blocks = [];
    for (const line of String(text).split('\n')) {
      const columns = /^ +\S|\S {2,}\S/.test(line);
      const last = blocks[blocks.length - 1];
      if (line.trim() === '') blocks.push(null);
      else if (columns && last && last.columns) last.lines.push(line);
      else blocks.push({ columns, lines: [line] });
    }
    const shown = blocks
      .filter(Boolean)
      .map((block) =>
        block.columns ? html('pre', { tabindex: '0' }, block.lines.join('\n')) : html('p', {}, block.lines[0]),
      );
    return [html('div', { class: 'prose' }, ...shown)];
  }

  // What came second and what would change the choice takes many plans; of a large fleet it is computed for one device at a time.
  function further(plan, device) {
    if (plan.in_full) return [];
    if (!page.state.document.live || !page.run().finished || page.state.plan !== page.seed().chosen) {
      const command = `stlf explain FILE --device ${device.name}`;
      return [html('p', { class: 'quiet' }, 'What would change that: ', html('code', {}, command))];
    }
    const place = html('div', { 'aria-live': 'polite' });
    const ask = html('button', { type: 'button', id: 'explain-further' }, 'What would change that?');
    ask.addEventListener('click', async () => {
      ask.disabled = true;
      place.replaceChildren(html('p', { class: 'quiet' }, 'Planning…'));
      try {
        const question = { device: device.name, edits: page.editing.body() };
        const answer = await page.ask('/api/explain', question);
        ask.hidden = true;
        place.replaceChildren(...prose(answer.explanation));
      } catch (error) {
        ask.disabled = false;
        place.replaceChildren(html('p', { class: 'quiet' }, [error.message, error.hint].filter(Boolean).join(' ')));
      }
    });
    return [html('p', {}, ask), place];
  }

  function shut() {
    const index = page.state.device;
    if (index === null) return;
    page.show('device', null);
    if (opener && opener.isConnected) opener.focus({ preventScroll: true });
    else page.focusDevice(index);
    opener = null;
  }

  page.linkTable = linkTable;
  page.explain = (index) => {
    const active = document.activeElement;
    if (active && active !== document.body && !byId('explanation').contains(active)) opener = active;
    page.show('device', page.state.device === index ? null : index);
  };

  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && page.state.device !== null) shut();
  });

  page.section('explanation', ['device'], draw);
})(window.stlfReport);
