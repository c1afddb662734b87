// Keeps the figures of an open page up to date. Without it the pages work the same, as of when they
// were loaded.
"use strict";
(() => {
  const status = document.getElementById("live");
  const { events, figures } = document.body.dataset;
  const parts = new Map(); // by queue
  for (const e of document.querySelectorAll("[data-queue]")) parts.set(e.dataset.queue, e);

  const set = (part, f) => {
    part.classList.toggle("paused", f.paused);
    for (const e of part.querySelectorAll("[data-t]")) {
      const text = f.t[e.dataset.t] ?? (f.failed ? null : "");
      if (text !== null && e.textContent !== text) e.textContent = text;
    }
    for (const e of part.querySelectorAll("[data-d]")) if (f.d) e.setAttribute("d", f.d[e.dataset.d] ?? "");
    for (const e of part.querySelectorAll("[data-w]")) if (f.w) e.setAttribute("width", f.w[e.dataset.w] ?? 0);
  };
  const show = (all) => {
    for (const [queue, f] of Object.entries(all)) if (parts.has(queue)) set(parts.get(queue), f);
  };
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };

  let source, timer, polling;
  const poll = async () => {
    const mine = polling = new AbortController();
    try {
      const reply = await fetch(figures, { headers: { Accept: "application/json" }, signal: mine.signal });
      if (!reply.ok) throw new Error(String(reply.status));
      show(await reply.json());
      say("live, every 5 s");
    } catch {
      if (!mine.signal.aborted) say("not connected");
    }
    if (!mine.signal.aborted) timer = setTimeout(poll, 5000);
  };
  const stop = () => { source?.close(); polling?.abort(); clearTimeout(timer); source = timer = undefined; };
  const start = () => {
    stop();
    if (document.hidden) return; // a page that nobody sees costs the store nothing
    source = new EventSource(events);
    source.onmessage = (e) => { show(JSON.parse(e.data)); say("live"); };
    source.onerror = () => {
      say("connecting");
      if (source.readyState === EventSource.CLOSED) { stop(); poll(); } // the server has no place for a stream
    };
  };
  if (events && parts.size > 0) {
    start();
    document.addEventListener("visibilitychange", start);
    addEventListener("pagehide", stop);
    addEventListener("pageshow", (e) => { if (e.persisted) start(); }); // after the browser's Back
  }

  // A job's page: its figures, and a new page when it has other buttons.
  const job = document.querySelector("[data-job]");
  const watch = async () => {
    if (!document.hidden) try {
      const reply = await fetch(job.dataset.job);
      if (!reply.ok) { location.reload(); return; } // which says why
      const s = await reply.json();
      for (const e of job.querySelectorAll("[data-j]")) {
        if (e.tagName === "PROGRESS") e.value = s[e.dataset.j]; else e.textContent = s[e.dataset.j];
      }
      if (s.State !== job.dataset.state) { location.reload(); return; }
    } catch { /* the next look may succeed */ }
    setTimeout(watch, 500);
  };
  if (job) watch();

  // Ticks in a list.
  for (const form of document.querySelectorAll("[data-select]")) {
    const boxes = [...form.querySelectorAll("input[name=id]")];
    const all = form.querySelector("[data-all]"), label = form.querySelector("[data-ticked]");
    const count = () => {
      const n = boxes.filter((b) => b.checked).length;
      if (label) label.textContent = n === 0 ? "None ticked" : n + " ticked";
      if (all) { all.checked = n > 0 && n === boxes.length; all.indeterminate = n > 0 && n < boxes.length; }
    };
    all?.addEventListener("change", () => { for (const b of boxes) b.checked = all.checked; count(); });
    for (const b of boxes) b.addEventListener("change", count);
    count();
  }
  document.addEventListener("submit", (e) => {
    const ask = e.submitter?.dataset.confirm;
    if (ask && !confirm(ask)) e.preventDefault();
  });
})();
