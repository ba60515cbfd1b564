/** The keys, and the dialog that lists them. */
const keyboard = (() => {
  const dialog = document.getElementById("help");

  /** The next thing of the kind that is held: line, layer, instruction, buffer or tile. */
  function move(step) {
    const held = selection.held() ?? { kind: "line", id: 0 };
    const field = held.kind === "tile" ? "place" : "id";
    const next = { ...held, [field]: held[field] + step };
    if (links.exists(next)) selection.hold(next, "keyboard");
  }

  const keys = [
    { keys: ["/"], does: "search", run: () => search.focus() },
    { keys: ["Escape"], shown: "Esc", does: "let go of the selection; when nothing is held, as Backspace", run: () => letGo() },
    { keys: ["Enter"], does: "open the box that is held or has the focus, if it is a double one", run: () => diagrams.open(selection.held()) },
    { keys: [], shown: "Space", does: "hold the box that has the focus" },
    { keys: ["Backspace"], does: "go back out of an open box", run: () => diagrams.leave(views.current()) },
    { keys: ["j", "n"], does: "the next line, layer, tile, instruction or buffer", run: () => move(1) },
    { keys: ["k", "p"], does: "the one before", run: () => move(-1) },
    ...views.names.slice(0, 9).map((name, index) => ({ keys: [String(index + 1)], does: document.getElementById(`tab-${name}`).textContent, run: () => views.turn(name) })),
    { keys: ["[", "]"], does: "the pass before, the next pass", run: (event) => passes.move(event.key === "]" ? 1 : -1) },
    { keys: ["+", "="], shown: "+", does: "zoom in: the diagram that is shown; time, if there is none or the timeline has the focus", run: () => zoom(1) },
    { keys: ["-"], does: "zoom out", run: () => zoom(-1) },
    { keys: ["0"], does: "all of it", run: () => (diagram() ? diagram().fit() : axis.time.all()) },
    { keys: ["ArrowLeft", "ArrowRight"], shown: "← →", does: "move through time", run: (event) => axis.time.pan(event.key === "ArrowRight" ? 0.2 : -0.2) },
    { keys: ["c"], does: "the critical path: what the time depends on, or the instruction that is held", run: () => why.toggle() },
    ...machinePlayer.keys,
    { keys: ["t"], does: "light or dark", run: theme.turn },
    { keys: ["?"], does: "this list", run: () => dialog.showModal() },
  ];

  function letGo() {
    if (selection.held()) selection.hold(null, "keyboard");
    else diagrams.leave(views.current());
  }

  /** The zoom of the diagram that is shown; nothing while the timeline or the buffer has the focus. */
  const diagram = () => (document.activeElement?.closest("#time") ? null : diagrams.zoom(views.current()));

  function zoom(steps) {
    if (diagram()) diagram().by(steps);
    else axis.time.zoom(steps);
  }

  /** Paints in the colours that hold now, at once: a printer doesn't wait for a frame. */
  function repaint() {
    colours.forget();
    timeline.paint();
    buffer.paint();
    whatIf.draw();
    machinePlan.repaint();
  }

  function press(event) {
    const typing = event.target.closest?.("input, select, dialog[open]");
    const pressing = event.key === "Enter" && event.target.closest?.("button, a");
    if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = keys.find((entry) => entry.keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.run(event);
  }

  function help() {
    const rows = keys.map((entry) => dom.make("tr", {}, dom.make("td", {}, entry.shown ?? entry.keys.join(" ")), dom.make("td", {}, entry.does)));
    const mouse = "Click holds what the pointer is on. On the timeline the wheel zooms, dragging moves, a double click shows all; on the buffer, Alt and the wheel zoom the rows. The lines between panes can be dragged, or moved with arrow keys. On a diagram Ctrl and the wheel zoom, dragging moves, and a double click opens a double box, which stands for several.";
    const close = dom.make("button", { click: () => dialog.close() }, "close");
    dialog.replaceChildren(close, dom.make("table", {}, ...rows), dom.make("p", {}, mouse)); // what has the focus is scrolled to: the first lines are beside it
  }

  function start() {
    help();
    document.addEventListener("keydown", press);
    theme.listen(repaint);
    document.getElementById("keys").addEventListener("click", () => dialog.showModal());
    for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaint);
  }

  return { start };
})();
