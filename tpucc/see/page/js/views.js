/** The tabs. */
const views = (() => {
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const names = tabs.map((tab) => tab.dataset.view);
  const hooks = { assembly: () => assembly.shown(), passes: (wanted) => passes.shown(wanted), whatif: () => whatIf.shown() };
  const addresses = { passes: () => passes.address() };
  const PARTS = { ranges: "error" }; // of another view, which addresses name
  let current = names[0];

  /** What a view shows, by the name that the address has for it. */
  const shown = (name) => addresses[name]?.() ?? diagrams.shown(name);

  const viewOf = (wanted) => PARTS[wanted] ?? insides.root(wanted);

  /** Makes a tab the chosen one, or one of the others. */
  function turned(tab, on) {
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    document.getElementById(`view-${tab.dataset.view}`).classList.toggle("on", on);
  }

  /** Shows a view by its name, or what is open in a diagram by its own; `reveal` brings what is lit into sight. */
  function show(wanted, reveal = true) {
    const name = viewOf(wanted);
    if (!names.includes(name)) return;
    current = name;
    diagrams.show(wanted);
    for (const tab of tabs) turned(tab, tab.dataset.view === name);
    hooks[name]?.(wanted);
    machinePlayer.entered();
    diagrams.begin(name);
    if (reveal && selection.held() && Object.hasOwn(model.diagrams, name)) diagrams.reveal(name);
    if (Object.hasOwn(PARTS, wanted)) document.getElementById(wanted).scrollIntoView();
    selection.show(name === names[0] ? "" : shown(name));
  }

  /** Shows a tab as it was left. */
  const turn = (name) => show(shown(name));

  const STEPS = { ArrowRight: (place) => (place + 1) % tabs.length, ArrowLeft: (place) => (place + tabs.length - 1) % tabs.length, Home: () => 0, End: () => tabs.length - 1 };

  /** Arrow keys go from tab to tab, and show what they come to. */
  function press(event) {
    const step = STEPS[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[step(tabs.indexOf(event.currentTarget))];
    turn(next.dataset.view);
    next.focus();
  }

  function start() {
    for (const tab of tabs) {
      tab.addEventListener("click", () => turn(tab.dataset.view));
      tab.addEventListener("keydown", press);
    }
    for (const row of document.querySelectorAll("[data-layers]")) linked(row, row.dataset.layers.split(" ").map(Number));
    for (const stop of document.querySelectorAll("#view-byte [data-instruction]")) stopped(stop, Number(stop.dataset.instruction));
    show(current);
  }

  /** A row of a table, or a mark of a chart, that stands for layers. */
  function linked(row, ids) {
    const wanted = { kind: "layer", id: ids[0] };
    selection.follow(row, "summary", () => wanted);
    selection.listen((_, lit) => row.classList.toggle("lit", lit !== null && ids.some((id) => lit.layers.has(id))));
  }

  /** A stop of the byte, or its row, at which an instruction works on it. */
  function stopped(stop, id) {
    selection.follow(stop, "byte", () => ({ kind: "instruction", id }));
    selection.listen((_, lit) => stop.classList.toggle("lit", lit !== null && lit.instructions[id] === 1));
  }

  return { start, show, turn, names, current: () => current };
})();
