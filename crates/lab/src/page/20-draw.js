// Elements, scales, axes and the colour scale. Everything that comes from data enters as text or attribute.
(function (page) {
  'use strict';

  const SVG = 'http://www.w3.org/2000/svg';

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === 'on') for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
      else if (key === 'style') for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
      else node.setAttribute(key, value === true ? '' : String(value));
    }
    for (const child of children) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  }

  const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
  const byId = (id) => document.getElementById(id);
  const bodyOf = (id) => byId(id).querySelector('.body');

  // A drawing in units of CSS pixels; the view box lets print and narrow boxes shrink it whole.
  function canvas(width, height, label, ...children) {
    return svg(
      'svg',
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: 'img',
        'aria-label': label,
      },
      ...children,
    );
  }

  const linear = (domain, range) => {
    const span = domain[1] - domain[0] || 1;
    return (value) => range[0] + ((value - domain[0]) / span) * (range[1] - range[0]);
  };

  const logarithmic = (domain, range) => {
    const inner = linear([Math.log(domain[0]), Math.log(domain[1])], range);
    return (value) => inner(Math.log(value));
  };

  // Round steps of 1, 2 or 5 times a power of ten; the domain grows to the ticks around it.
  function niceTicks(low, high, wanted) {
    if (!(high > low)) {
      const pad = Math.abs(low) > 0 ? Math.abs(low) * 0.1 : 1;
      return niceTicks(low - pad, high + pad, wanted);
    }
    const rough = (high - low) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((unit) => unit * power).find((one) => one >= rough * 0.999);
    const ticks = [];
    const first = Math.floor(low / step + 1e-9);
    const last = Math.ceil(high / step - 1e-9);
    for (let index = first; index <= last; index += 1) ticks.push(Number((index * step).toPrecision(12)));
    return ticks;
  }

  function powerTicks(low, high) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
      ticks.push(10 ** power);
    return ticks;
  }

  function axes(box, x, y, words) {
    const group = svg('g', { class: 'axes', 'aria-hidden': 'true' });
    for (const tick of y.ticks) {
      const at = y.scale(tick);
      group.append(
        svg('line', { class: 'grid', x1: box.left, x2: box.right, y1: at, y2: at }),
        svg('text', { class: 'tick', x: box.left - 8, y: at + 4, 'text-anchor': 'end' }, words.y(tick)),
      );
    }
    for (const tick of x.ticks) {
      const at = x.scale(tick);
      group.append(
        svg('line', { class: 'axis', x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4 }),
        svg('text', { class: 'tick', x: at, y: box.bottom + 18, 'text-anchor': 'middle' }, words.x(tick)),
      );
    }
    group.append(
      svg('line', { class: 'axis', x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
      svg('text', { class: 'axis-name', x: box.right, y: box.bottom + 38, 'text-anchor': 'end' }, words.xName),
      svg('text', { class: 'axis-name', x: 0, y: box.top - 14 }, words.yName),
    );
    return group;
  }

  // Lightness falls (on paper) or rises (on black) all the way, so the order survives any colour blindness and
  // a grey printer; both ends keep 3:1 against their ground, so that a thin link stays visible.
  const RAMP = {
    light: ['#37938c', '#2b7fa6', '#3b62a8', '#4a3c92', '#3d1a66', '#260a3a'],
    dark: ['#2f7c8c', '#4897a4', '#7bb3a4', '#b3cb91', '#e5dc8e', '#fff6cf'],
  };

  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const STOPS = { light: RAMP.light.map(parts), dark: RAMP.dark.map(parts) };

  function rampParts(share, theme) {
    const stops = STOPS[theme];
    const at = Math.min(1, Math.max(0, share || 0)) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(at));
    return stops[left].map((value, index) => Math.round(value + (at - left) * (stops[left + 1][index] - value)));
  }

  const rgb = (share, theme) => `rgb(${rampParts(share, theme).join(' ')})`;
  // Left to the style sheet's colour scheme, so that a change of theme or a printer needs no redrawing.
  const ramp = (share) => `light-dark(${rgb(share, 'light')}, ${rgb(share, 'dark')})`;

  function rampLegend(name, top, write) {
    const steps = [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => ramp(share)).join(', ');
    return html(
      'div',
      { class: 'ramp' },
      html('span', { class: 'ramp-name' }, name),
      html('span', {}, write(0)),
      html('span', {
        class: 'ramp-bar',
        role: 'img',
        'aria-label': `${name}, colour scale from ${write(0)} to ${write(top)}`,
        style: { 'background-image': `linear-gradient(to right, ${steps})` },
      }),
      html('span', {}, write(top)),
    );
  }

  const pen = document.createElement('canvas').getContext('2d');
  let family = '';
  let face = '';
  function textWidth(text, size, weight) {
    family = family || getComputedStyle(document.body).fontFamily;
    const wanted = `${weight || 400} ${size}px ${family}`;
    if (wanted !== face) {
      face = wanted;
      pen.font = wanted;
    }
    return pen.measureText(text).width;
  }

  function fitText(text, room, size, weight) {
    const whole = String(text);
    // Measuring is slow on the kilobytes that a hostile name may have.
    let high = Math.min(whole.length, 80);
    let shown = page.words.shorten(whole, high);
    if (textWidth(shown, size, weight) <= room) return shown;
    let low = 3;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (textWidth(page.words.shorten(whole, middle), size, weight) <= room) low = middle;
      else high = middle - 1;
    }
    shown = page.words.shorten(whole, low);
    return shown;
  }

  const empty = (text) => html('p', { class: 'none' }, text);

  Object.assign(page, {
    html,
    svg,
    byId,
    bodyOf,
    canvas,
    linear,
    logarithmic,
    niceTicks,
    powerTicks,
    axes,
    ramp,
    rampParts,
    rampLegend,
    textWidth,
    fitText,
    empty,
  });
})(window.stlfReport);
