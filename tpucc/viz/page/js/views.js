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
    for (const row of document.querySelectorAll("[data-layers]")) linked(row, row.dataset.layers.split(" ").map(Number));
    show(current);
  }

  /** A row of a table, or a mark of a chart, that stands for layers. */
  function linked(row, ids) {
    const wanted = { kind: "layer", id: ids[0] };
    row.addEventListener("mouseenter", () => selection.point(wanted, "summary"));
    row.addEventListener("mouseleave", () => selection.point(null, "summary"));
    row.addEventListener("click", () => selection.hold(wanted, "summary"));
    selection.listen((_, lit) => row.classList.toggle("lit", lit !== null && ids.some((id) => lit.layers.has(id))));
  }

  return { start, show, turn, names, current: () => current };
})();
