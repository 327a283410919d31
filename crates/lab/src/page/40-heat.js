// Divergence of every pair of devices, as a heat map on a canvas that also answers to arrow keys.
(function (page) {
  'use strict';

  const { html, words } = page;
  let map = null; // what is drawn: {seed, plan, order, canvas, base, cell, gutter, side, cursor, readout, sources}

  function order(seed, plan) {
    if (!plan) return seed.devices.map((_, index) => index);
    const { sources, targets } = page.mesh(plan);
    return sources.concat(targets);
  }

  function draw() {
    const body = page.bodyOf('divergence');
    const seed = page.seed();
    if (!seed || !seed.divergence || seed.devices.length === 0) {
      map = null;
      const many = seed && seed.devices.length > 200;
      body.replaceChildren(
        page.empty(
          many
            ? `Divergences are left out for fleets above 200 devices; this one has ${words.count(seed.devices.length)}.`
            : 'No divergences were recorded.',
        ),
      );
      return;
    }
    const plan = page.plan();
    const kept = map && map.seed === seed ? map.cursor : null;
    const lead = html(
      'p',
      { class: 'lead' },
      'How different two devices’ data are, from 0 (alike) to 2. Sources come first; lines separate them from the targets.',
    );
    const element = html('canvas', {
      tabindex: '0',
      role: 'img',
      'aria-label': 'Heat map of divergences. Arrow keys move from pair to pair.',
      'aria-describedby': 'heat-readout',
    });
    const readout = html('div', { id: 'heat-readout', class: 'card pair-card', role: 'status' });
    map = {
      seed,
      plan,
      order: order(seed, plan),
      canvas: element,
      readout,
      cursor: kept,
      sources: plan ? page.mesh(plan).sources.length : 0,
    };
    body.replaceChildren(
      lead,
      html(
        'div',
        { class: 'desk' },
        html(
          'figure',
          { class: 'board' },
          html(
            'div',
            { class: 'legend' },
            page.rampLegend('divergence', page.divergenceTop(seed), (value) => words.number(value, 3)),
            html(
              'span',
              { class: 'key' },
              html('span', { class: 'swatch unknown', 'aria-hidden': 'true' }),
              'not measured',
            ),
          ),
          html('div', { class: 'scroll heat' }, element),
        ),
        html('div', { class: 'side' }, readout),
      ),
    );
    size(body);
    prepare();
    paint();
    tell();
    listen(element);
  }

  function size(body) {
    const count = map.order.length;
    const room = Math.max(280, Math.min(body.querySelector('.board').clientWidth - 34, 760));
    const longest = Math.max(
      ...map.order.map((index) => page.textWidth(words.shorten(map.seed.devices[index].name, 16), 12)),
    );
    const gutter = count <= 60 ? Math.ceil(Math.min(longest + 10, room * 0.28)) : 18;
    const cell = Math.max(count <= 60 ? 14 : 2, Math.min(44, (room - gutter) / count));
    map.gutter = gutter;
    map.cell = cell >= 6 ? Math.floor(cell) : cell;
    map.side = Math.ceil(gutter + map.cell * count) + 1;
    map.canvas.style.setProperty('width', map.side + 'px');
    map.canvas.style.setProperty('height', map.side + 'px');
  }

  function colours() {
    const styles = getComputedStyle(document.documentElement);
    const ground = page.ground();
    const pick = (name) => styles.getPropertyValue(`${name}-${ground}`).trim();
    const hole = pick('--hole');
    return {
      ground,
      ink: pick('--ink'),
      quiet: pick('--quiet'),
      paper: pick('--paper'),
      hole: [1, 3, 5].map((at) => parseInt(hole.slice(at, at + 2), 16)),
    };
  }

  // The cells are painted once, one pixel each, and stretched; the pointer then costs one copy per move.
  function prepare() {
    const { order: devices, cell, gutter, side, seed } = map;
    const count = devices.length;
    const tone = colours();
    const top = page.divergenceTop(seed);
    const values = seed.divergence.values;
    const cells = new ImageData(count, count);
    const hole = tone.hole;
    devices.forEach((row, y) => {
      const line = values[row] || [];
      devices.forEach((column, x) => {
        if (row === column) return;
        const value = line[column];
        const at = (y * count + x) * 4;
        cells.data.set(words.known(value) ? page.rampParts(value / top, tone.ground) : hole, at);
        cells.data[at + 3] = 255;
      });
    });
    const small = html('canvas', { width: count, height: count });
    small.getContext('2d').putImageData(cells, 0, 0);
    map.tone = tone;
    map.scale = Math.min(3, Math.max(window.devicePixelRatio || 1, 2));
    map.base = html('canvas', { width: side * map.scale, height: side * map.scale });
    const pen = map.base.getContext('2d');
    pen.scale(map.scale, map.scale);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, gutter, gutter, cell * count, cell * count);
    if (cell >= 8) {
      for (let index = 1; index <= count; index += 1) {
        pen.clearRect(gutter + index * cell - 1, gutter, 1, side);
        pen.clearRect(gutter, gutter + index * cell - 1, side, 1);
      }
    }
    labels(pen, tone);
  }

  function paint() {
    const { canvas, base, cell, gutter, cursor, scale } = map;
    if (canvas.width !== base.width) canvas.width = base.width;
    if (canvas.height !== base.height) canvas.height = base.height;
    const pen = canvas.getContext('2d');
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, base.width, base.height);
    pen.drawImage(base, 0, 0);
    if (!cursor) return;
    pen.scale(scale, scale);
    pen.strokeStyle = map.tone.ink;
    pen.lineWidth = 2;
    pen.strokeRect(gutter + cursor.x * cell - 1, gutter + cursor.y * cell - 1, cell + 1, cell + 1);
  }

  function labels(pen, tone) {
    const { order: devices, cell, gutter, side, seed, sources } = map;
    const family = getComputedStyle(document.body).fontFamily;
    pen.textBaseline = 'middle';
    if (sources > 0 && sources < devices.length) {
      const at = gutter + sources * cell - 0.5;
      // A line within a line shows on light cells and on dark ones.
      for (const [colour, width] of [
        [tone.paper, 3],
        [tone.ink, 1],
      ]) {
        pen.strokeStyle = colour;
        pen.lineWidth = width;
        pen.beginPath();
        pen.moveTo(at, gutter - 10);
        pen.lineTo(at, side);
        pen.moveTo(gutter - 10, at);
        pen.lineTo(side, at);
        pen.stroke();
      }
    }
    if (devices.length > 60) {
      pen.font = `12px ${family}`;
      pen.fillStyle = tone.quiet;
      const groups = [
        ['sources', 0, sources],
        ['targets', sources, devices.length],
      ];
      for (const [name, from, to] of groups) {
        // A name that does not fit beside its devices would be read as its neighbour's.
        if ((to - from) * cell < page.textWidth(name, 12) + 6) continue;
        pen.fillText(name, gutter + from * cell + 4, 8);
        pen.save();
        pen.translate(8, gutter + to * cell - 4);
        pen.rotate(-Math.PI / 2);
        pen.fillText(name, 0, 0);
        pen.restore();
      }
      return;
    }
    pen.font = `${Math.min(12, Math.max(9, cell - 3))}px ${family}`;
    devices.forEach((index, at) => {
      const text = page.fitText(seed.devices[index].name, gutter - 8, Math.min(12, Math.max(9, cell - 3)));
      pen.fillStyle = tone.ink;
      pen.textAlign = 'right';
      pen.fillText(text, gutter - 6, gutter + at * cell + cell / 2);
      pen.save();
      pen.translate(gutter + at * cell + cell / 2, gutter - 6);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = 'left';
      pen.fillText(text, 0, 0);
      pen.restore();
    });
  }

  function tell() {
    const { readout, cursor, order: devices, seed, plan } = map;
    const title = html('h3', {}, 'Pair');
    if (!cursor) {
      readout.replaceChildren(
        title,
        html('p', { class: 'quiet' }, 'Point at a cell, or focus the map and use the arrow keys, to read its value.'),
      );
      return;
    }
    const row = devices[cursor.y];
    const column = devices[cursor.x];
    const at = (matrix) => (matrix && matrix[row] ? matrix[row][column] : null);
    const name = (index) => words.shorten(seed.devices[index].name, 40) + (plan ? `, ${plan.roles[index]}` : '');
    const value = row === column ? null : at(seed.divergence.values);
    const low = at(seed.divergence.low);
    const high = at(seed.divergence.high);
    const rows = [
      ['row', name(row)],
      ['column', name(column)],
    ];
    rows.push([
      'divergence',
      words.known(value) ? words.number(value) : row === column ? 'the same device' : 'not measured',
    ]);
    if (words.known(value) && words.known(low) && words.known(high))
      rows.push(['interval', `${words.number(low)} to ${words.number(high)}`]);
    readout.replaceChildren(
      title,
      html('dl', { class: 'pairs' }, ...rows.flatMap(([key, text]) => [html('dt', {}, key), html('dd', {}, text)])),
    );
  }

  function move(x, y) {
    const last = map.order.length - 1;
    const cursor = { x: Math.min(last, Math.max(0, x)), y: Math.min(last, Math.max(0, y)) };
    if (map.cursor && map.cursor.x === cursor.x && map.cursor.y === cursor.y) return;
    map.cursor = cursor;
    repaint();
  }

  let pending = 0;
  function repaint() {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      if (!map) return;
      paint();
      tell();
    });
  }

  function listen(element) {
    element.addEventListener('pointermove', (event) => {
      const box = element.getBoundingClientRect();
      // Print and narrow boxes may shrink the canvas.
      const shrink = map.side / box.width;
      const x = Math.floor(((event.clientX - box.left) * shrink - map.gutter) / map.cell);
      const y = Math.floor(((event.clientY - box.top) * shrink - map.gutter) / map.cell);
      if (x >= 0 && y >= 0) move(x, y);
    });
    element.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      if (map.cursor) move(map.cursor.x + step[0], map.cursor.y + step[1]);
      else move(1, 0);
    });
  }

  page.section('divergence', ['plan', 'width'], draw);
  page.section('divergence-paint', ['theme'], () => {
    if (!map) return;
    prepare();
    paint();
  });
})(window.stlfReport);
