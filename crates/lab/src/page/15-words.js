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

  // Halves away from zero, scaled first: the terminal rounds in the same way (`number_format.rs`), and both are tested with `number_cases.tsv`.
  function rounded(value, digits) {
    const scale = 10 ** digits;
    return fixed((Math.sign(value) * Math.round(Math.abs(value) * scale)) / scale, digits);
  }

  const trimmed = (text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

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
    const before = Number(size.toExponential().split('e')[1]);
    return trimmed(rounded(value, Math.max(0, wanted - 1 - before)));
  }

  // With so many digits after the point, or with as many as the size asks for.
  function percent(share, digits) {
    if (!known(share)) return NONE;
    const value = 100 * share;
    if (digits !== undefined) return fixed(value, digits) + ' %';
    if (value !== 0 && Math.abs(value) < 0.01) return 'under 0.01 %';
    return trimmed(rounded(value, Math.abs(value) < 1 ? 2 : 1)) + ' %';
  }

  function joules(value) {
    if (!known(value)) return NONE;
    const size = Math.abs(value);
    if (size >= 1e7) return number(value / 1e6) + ' MJ';
    if (size >= 1e4) return number(value / 1e3) + ' kJ';
    if (size >= 1 || size === 0) return number(value) + ' J';
    const [factor, unit] = size >= 1e-3 ? [1e3, 'mJ'] : size >= 1e-6 ? [1e6, 'µJ'] : [1e9, 'nJ'];
    return `${number(factor * value)} ${unit}`;
  }

  function bytes(value) {
    if (!known(value)) return NONE;
    if (value >= 1e9) return rounded(value / 1e9, 1) + ' GB';
    if (value >= 1e6) return rounded(value / 1e6, 1) + ' MB';
    if (value >= 1e3) return rounded(value / 1e3, 0) + ' kB';
    return count(Math.trunc(value)) + ' B';
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
    return known(plan.gap) ? `${name}, gap ${percent(Math.max(plan.gap, 1e-4))}` : name;
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
      `φᴱ ${number(plan.phi_e)}`,
      plural(counts.sources, 'source'),
      plural(counts.targets, 'target'),
      linkCounts(plan),
      `${joules(plan.joules)} in ${counts.handovers > 0 ? 'both' : 'links'}`,
    ];
    if (known(plan.energy_share)) parts.push(`${percent(plan.energy_share)} of all links’ energy`);
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
