/** The tabs. */
const views = (() => {
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const names = tabs.map((tab) => tab.dataset.view);
  const hooks = { assembly: () => assembly.shown(), passes: () => passes.shown() };
  let current = names[0];

  /** Shows a view by its name, or what is open in a diagram by its own; `reveal` brings what is lit into sight. */
  function show(wanted, reveal = true) {
    const name = insides.root(wanted);
    if (!names.includes(name)) return;
    current = name;
    diagrams.show(wanted);
    for (const tab of tabs) {
      const on = tab.dataset.view === name;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      document.getElementById(`view-${tab.dataset.view}`).classList.toggle("on", on);
    }
    hooks[name]?.();
    if (reveal && selection.held() && Object.hasOwn(model.diagrams, name)) diagrams.reveal(name);
    selection.show(name === names[0] ? "" : diagrams.shown(name));
  }

  /** Shows a tab as it was left. */
  const turn = (name) => show(diagrams.shown(name));

  function start() {
    for (const tab of tabs) tab.addEventListener("click", () => turn(tab.dataset.view));
    const rows = document.querySelectorAll("[data-layer]:not(.tile)");
    for (const row of rows) linked(row, { kind: "layer", id: Number(row.dataset.layer) });
    show(current);
  }

  /** A row of a table, or a point of a chart, that stands for a layer. */
  function linked(row, wanted) {
    row.addEventListener("mouseenter", () => selection.point(wanted, "summary"));
    row.addEventListener("mouseleave", () => selection.point(null, "summary"));
    row.addEventListener("click", () => selection.hold(wanted, "summary"));
    selection.listen((_, lit) => row.classList.toggle("lit", lit?.layers.has(wanted.id) ?? false));
  }

  return { start, show, turn, names, current: () => current };
})();
