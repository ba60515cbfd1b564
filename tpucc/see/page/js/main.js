/** Brings the page to life, and takes it to where its address says. */
(() => {
  const asked = selection.restored(); // before the parts start, which write the address
  const parts = [tips, panes, source, diagrams, tiles, assembly, passes, timeline, buffer, machinePlayer, inspector, search, whatIf, why, views, keyboard];
  for (const part of parts) part.start();

  const windowText = document.getElementById("window");
  function told() {
    const [from, to] = axis.window();
    const host = retiming.hostSeconds ? `; the host's ${words.duration(retiming.hostSeconds)} before and after are not drawn` : "";
    windowText.textContent = `${words.span(from, to)} of ${words.number(model.cycles)} · ${words.time(to - from)}${host}`;
  }
  axis.listen(told);
  told();

  const zooms = { in: () => axis.time.zoom(2), out: () => axis.time.zoom(-2), all: () => axis.time.all() };
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", zooms[button.dataset.zoom]);

  /** The address is the whole state: one without a view is of the first, one without a selection holds nothing. */
  function restore({ view, wanted }) {
    views.show(view || views.names[0]);
    selection.hold(wanted, "address");
  }
  window.addEventListener("hashchange", () => restore(selection.restored()));
  document.documentElement.classList.add("alive"); // only now is there one view at a time, and something to scroll in it
  restore(asked);
  tour.start(asked);

  /** For those who drive the page from outside: what is held, and what lights up. */
  window.tpucc = {
    selection: selection.current,
    retimed: retiming.retimed,
    path: why.path,
    lit() {
      const lit = selection.lit();
      if (!lit) return null;
      const [lines, layers, buffers] = [lit.lines, lit.layers, lit.buffers].map((set) => [...set].sort((a, b) => a - b));
      const tiles = [...lit.fetches].map((number) => [model.fetches[number].layer, model.fetches[number].place]);
      const instructions = [];
      lit.instructions.forEach((mark, index) => mark && instructions.push(index));
      return { lines, layers, buffers, tiles, instructions };
    },
  };
})();
