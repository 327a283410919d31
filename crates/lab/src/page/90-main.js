// The start: theme, paper, width, navigation, and the first drawing.
(function (page) {
  'use strict';

  const { byId } = page;

  let printing = false;
  /** @returns {'light' | 'dark'} */
  function ground() {
    if (printing) return 'light';
    const chosen = document.documentElement.getAttribute('data-theme');
    if (chosen) return chosen === 'dark' ? 'dark' : 'light';
    return window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  }

  // Canvases hold pixels, not styles: they are drawn again for paper, and details are opened.
  function watchPrinting() {
    let opened = [];
    window.addEventListener('beforeprint', () => {
      printing = true;
      opened = Array.from(document.querySelectorAll('main details'), (one) => /** @type {HTMLDetailsElement} */ (one));
      opened = opened.filter((one) => !one.open);
      for (const one of opened) one.open = true;
      page.refresh('theme');
      page.drawNow(Infinity);
    });
    window.addEventListener('afterprint', () => {
      printing = false;
      for (const one of opened) one.open = false;
      page.refresh('theme');
    });
  }

  // Drawings are laid out for the width there is; a new width is drawn once it has settled.
  function watchWidth() {
    let width = document.documentElement.clientWidth;
    let timer = 0;
    new ResizeObserver(() => {
      const now = document.documentElement.clientWidth;
      if (now === width || printing) return;
      width = now;
      clearTimeout(timer);
      timer = setTimeout(() => page.refresh('width'), 120);
    }).observe(document.documentElement);
  }

  // Remembered while the page is open and nowhere else.
  function nameTheme() {
    const next = ground() === 'dark' ? 'Light' : 'Dark';
    byId('theme-name').textContent = next;
    byId('theme').setAttribute('aria-label', `Switch to ${next.toLowerCase()} colours`);
  }

  function watchTheme() {
    byId('theme').addEventListener('click', () => {
      document.documentElement.setAttribute('data-theme', ground() === 'dark' ? 'light' : 'dark');
      page.refresh('theme');
    });
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => page.refresh('theme'));
  }

  // The section in view is the one that the navigation marks.
  function watchPlace() {
    const links = new Map(
      Array.from(document.querySelectorAll('nav a'), (link) => [link.getAttribute('href').slice(1), link]),
    );
    const visible = new Set();
    const watcher = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (entry.isIntersecting) visible.add(entry.target.id);
          else visible.delete(entry.target.id);
        }
        const first = Array.from(links.keys()).find((id) => visible.has(id));
        for (const [id, link] of links) {
          if (id === first) link.setAttribute('aria-current', 'true');
          else link.removeAttribute('aria-current');
        }
      },
      { rootMargin: '-70px 0px -55% 0px' },
    );
    for (const id of links.keys()) watcher.observe(byId(id));
  }

  function start() {
    byId('run').addEventListener('change', () => page.show('run', Number(byId('run').value)));
    byId('seed').addEventListener('change', () => page.show('seed', Number(byId('seed').value)));
    page.listenToSliders();
    watchPrinting();
    watchWidth();
    watchTheme();
    watchPlace();
    try {
      page.load(page.readEmbedded());
      page.drawNow(40, 'explanation');
    } catch (error) {
      byId('notice').hidden = false;
      byId('notice').textContent = `The data of this page cannot be read: ${error.message}`;
    }
    document.body.removeAttribute('data-drawing');
  }

  page.ground = ground;
  page.section('theme', ['document', 'theme'], nameTheme);
  start();
})(window.stlfReport);
