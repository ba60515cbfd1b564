/** The source: lines light up, and can be pointed at and held. */
const source = (() => {
  const panel = document.getElementById("source");
  const lines = [...panel.querySelectorAll("[data-line]")];
  const lineOf = (event) => {
    const line = event.target.closest("[data-line]");
    return line ? { kind: "line", id: Number(line.dataset.line) } : null;
  };

  /** Scrolls down or up, never to the side, until the line can be seen. */
  function reveal(line) {
    const top = line.offsetTop - panel.offsetTop;
    const bottom = top + line.offsetHeight - panel.clientHeight;
    panel.scrollTop = Math.min(top, Math.max(bottom, panel.scrollTop));
  }

  function light(chosen, lit, from) {
    for (const line of lines) line.classList.toggle("lit", lit?.lines.has(Number(line.dataset.line)) ?? false);
    const first = panel.querySelector(".lit");
    if (first && from !== "source" && selection.held()) requestAnimationFrame(() => reveal(first)); // when all views have changed: one layout
  }

  function start() {
    selection.follow(panel, "source", lineOf, (wanted) => wanted && selection.hold(selection.same(wanted, selection.held()) ? null : wanted, "source"));
    selection.listen(light);
  }

  return { start };
})();
