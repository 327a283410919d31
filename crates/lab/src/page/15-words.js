// How numbers and findings read: one place, so that a joule looks the same everywhere on the page.
(function (page) {
  'use strict';

  const NONE = '–';
  /** @type {Words['known']} */
  const known = (value) => typeof value === 'number' && Number.isFinite(value);
  const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

  function count(value) {
    if (!known(value)) return NONE;
    return Number.isInteger(value) ? grouped.format(value) : fixed(value, 1);
  }

  function fixed(value, digits) {
    // A true minus sign lines up with the digits of tabular figures.
    return value.toFixed(digits).replace('-', '−');
  }

  // Significant digits without exponents in the range people read, and without a tail of zeros.
  function number(value, digits) {
    if (!known(value)) return NONE;
    if (value === 0) return '0';
    const wanted = digits || 4;
    const size = Math.abs(value);
    if (size >= 1e7 || size < 1e-4)
      return value
        .toExponential(wanted - 2)
        .replace(/-/g, '−')
        .replace('e+', 'e');
    if (size >= 10 ** wanted) return grouped.format(value).replace('-', '−');
    return String(Number(value.toPrecision(wanted))).replace('-', '−');
  }

  function percent(share, digits) {
    return known(share) ? fixed(share * 100, digits === undefined ? 1 : digits) + ' %' : NONE;
  }

  // Without decimals, unless nothing would be left of it.
  function wholePercent(share) {
    if (known(share) && share > 0 && share < 0.0005) return 'under 0.1 %';
    return percent(share, share > 0 && share < 0.01 ? 1 : 0);
  }

  function joules(value) {
    if (!known(value)) return NONE;
    const size = Math.abs(value);
    if (size >= 1e6) return number(value / 1e6, 3) + ' MJ';
    if (size >= 1e4) return number(value / 1e3, 3) + ' kJ';
    if (size >= 100) return grouped.format(value).replace('-', '−') + ' J';
    if (size >= 10) return fixed(value, 1) + ' J';
    if (size >= 1) return fixed(value, 2) + ' J';
    if (size === 0) return '0 J';
    const [factor, unit] = size >= 1e-3 ? [1e3, 'mJ'] : size >= 1e-6 ? [1e6, 'µJ'] : [1e9, 'nJ'];
    return `${number(value * factor, 3)} ${unit}`;
  }

  function bytes(value) {
    if (!known(value)) return NONE;
    const units = ['B', 'kB', 'MB', 'GB', 'TB'];
    let size = value;
    let unit = 0;
    while (Math.abs(size) >= 1000 && unit < units.length - 1) {
      size /= 1000;
      unit += 1;
    }
    return (unit === 0 ? count(Math.round(size)) : number(size, 3)) + ' ' + units[unit];
  }

  function signed(value, write) {
    if (!known(value)) return NONE;
    const text = write(Math.abs(value));
    // What rounds to nothing has no sign.
    if (!/[1-9]/.test(text)) return text;
    return (value > 0 ? '+' : '−') + text;
  }

  const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + 's'}`;

  function status(plan) {
    if (plan.status === 'optimal') return 'proven optimal';
    const name = plan.status ? String(plan.status) : 'status unknown';
    return known(plan.gap) ? `${name}, gap ${number(plan.gap * 100, 3)} %` : name;
  }

  function roleCounts(plan) {
    const sources = plan.roles.filter((role) => role === 'source').length;
    const targets = plan.roles.length - sources;
    return { sources, targets, links: plan.links.length, handovers: plan.handovers.length };
  }

  // "6 links and 3 hand-overs", and what both are called together.
  function linkCounts(plan) {
    const links = plural(plan.links.length, 'link');
    return plan.handovers.length > 0 ? `${links} and ${plural(plan.handovers.length, 'hand-over')}` : links;
  }

  const linkNames = (plans) => (plans.some((plan) => plan.handovers.length > 0) ? 'links and hand-overs' : 'links');

  // The first five of them.
  const some = (names) =>
    names.slice(0, 5).join(', ') + (names.length > 5 ? ` and ${count(names.length - 5)} more` : '');

  function planLine(plan) {
    const counts = roleCounts(plan);
    const parts = [
      `φᴱ ${number(plan.phi_e, 3)}`,
      plural(counts.sources, 'source'),
      plural(counts.targets, 'target'),
      linkCounts(plan),
      `${joules(plan.joules)} in ${counts.handovers > 0 ? 'both' : 'links'}`,
    ];
    if (known(plan.energy_share)) parts.push(`${wholePercent(plan.energy_share)} of all links’ energy`);
    if (known(plan.accuracy)) parts.push(`${percent(plan.accuracy)} accuracy`);
    return parts.join(' · ');
  }

  // Half the 95 % interval beside the mean, as in the command line's tables; one seed has none.
  function meanWithin(spread, scale, digits) {
    if (!spread || !known(spread.mean)) return NONE;
    const mean = fixed(spread.mean * scale, digits);
    return spread.half > 0 ? `${mean} ± ${fixed(spread.half * scale, digits)}` : mean;
  }

  // A number of one seed says of which, beside a table of means over all.
  function ofSeed(text) {
    const run = page.run();
    return run && run.seeds.length > 1 ? `${text}, seed ${page.seed().seed}` : text;
  }

  const boundName = (plan) => (plan.bound === 'paper' ? 'the paper’s bound' : `the ${plan.bound || 'unknown'} bound`);

  // Middle ellipsis: device names of one site often differ only in their ends.
  function shorten(text, most) {
    const whole = Array.from(String(text));
    if (whole.length === 0) return '(no name)';
    if (whole.length <= most) return whole.join('');
    const tail = Math.floor((most - 1) / 2);
    return whole.slice(0, most - 1 - tail).join('') + '…' + whole.slice(whole.length - tail).join('');
  }

  page.words = {
    NONE,
    known,
    count,
    fixed,
    number,
    percent,
    wholePercent,
    joules,
    bytes,
    signed,
    plural,
    status,
    roleCounts,
    linkCounts,
    linkNames,
    some,
    planLine,
    meanWithin,
    ofSeed,
    boundName,
    shorten,
  };
})(window.stlfReport);
