// Talking to `stlf serve`: the answers, the errors, and the progress of a run that is not finished.
(function (page) {
  'use strict';

  const { html, byId, words } = page;

  class Refusal extends Error {
    constructor(message, hint) {
      super(message);
      this.hint = hint || null;
    }
  }

  async function ask(path, body, signal) {
    const token = page.state.document.live && page.state.document.live.token;
    const headers = { Accept: 'application/json' };
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    let answer;
    try {
      answer = await fetch(path, {
        method: body === undefined ? 'GET' : 'POST',
        headers,
        signal,
        cache: 'no-store',
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new Refusal('The server does not answer.', 'Is `stlf serve` still running? Your changes are kept.');
    }
    const given = await answer.json().catch((error) => {
      if (error.name === 'AbortError') throw error;
      return null;
    });
    if (answer.ok && given) return given;
    const told = given && given.error;
    throw new Refusal(
      told && told.message ? String(told.message) : `The server answered with status ${answer.status}.`,
      told && told.hint ? String(told.hint) : null,
    );
  }

  const SECOND = 1000;
  let timer = 0;
  let asked = ''; // how far the run was when the page was last asked for again

  function watchProgress() {
    clearTimeout(timer);
    const running = Boolean(page.state.document.live) && page.state.document.runs.some((run) => !run.finished);
    byId('progress').hidden = !running;
    if (running) poll();
  }

  async function poll() {
    const note = byId('progress-note');
    try {
      const answer = await ask('/api/progress');
      answer.stages = Array.isArray(answer.stages) ? answer.stages : [];
      drawStages(answer.stages);
      if (answer.finished) {
        note.textContent = 'Finished; loading the results.';
        page.load(await ask('/api/state'));
        byId('progress').hidden = true;
        return;
      }
      note.textContent = 'The run is in progress; this page follows it, seed by seed.';
      const news = newSeeds(answer.stages);
      if (news && !page.edited()) {
        const state = await ask('/api/state');
        asked = news; // not before the answer: one that failed is asked for again
        page.load(state);
        return;
      }
    } catch (error) {
      note.textContent = `${error.message} Trying again.`;
    }
    timer = setTimeout(poll, SECOND);
  }

  // Whether more seeds have a plan or results than the page shows; what cannot be shown is asked for once.
  function newSeeds(stages) {
    const { seeds } = page.state.document.runs[0];
    const done = (name) => (stages.find((stage) => stage.stage === name) || { done: 0 }).done;
    const there = `${done('plan')} ${done('transfer')}`;
    const here = `${seeds.length} ${seeds.filter((seed) => seed.targets.length > 0).length}`;
    return there !== here && there !== asked ? there : null;
  }

  // Bars are kept between answers, so that a screen reader is not told of a new bar every second.
  function drawStages(stages) {
    const box = byId('progress-stages');
    const rows = Array.from(box.children);
    stages.forEach((stage, index) => {
      let row = rows[index];
      if (!row || row.getAttribute('data-stage') !== String(stage.stage)) {
        const fresh = html(
          'div',
          { class: 'stage', 'data-stage': stage.stage },
          html('span', { class: 'stage-name' }),
          html('progress', { 'aria-label': stage.stage }),
          html('span', { class: 'number' }),
        );
        if (row) row.replaceWith(fresh);
        else box.append(fresh);
        row = fresh;
      }
      const [name, bar, count] = row.children;
      name.textContent = String(stage.stage);
      bar.max = Math.max(1, stage.total || 0);
      bar.value = Math.min(stage.done || 0, bar.max);
      const models = words.known(stage.models) ? `, ${words.plural(stage.models, 'model')}` : '';
      count.textContent = `${words.count(stage.done)} of ${words.count(stage.total)}${models}`;
    });
    for (const row of rows.slice(stages.length)) row.remove();
  }

  page.ask = ask;
  page.section('progress', ['document'], watchProgress);
})(window.stlfReport);
