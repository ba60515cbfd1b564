/** The graph after each pass that changed it: what went, what came. */
const passes = (() => {
  const AROUND = 2;
  const KEPT = 0;
  const SIGNS = ["", "+", "−"];
  const panel = document.getElementById("view-passes");
  const { shown: stages, unchanged } = model.stages;
  const texts = model.stages.texts.split("\n");
  const textOf = decode.deltas(model.stages.text);
  const originOf = decode.deltas(model.stages.origin);
  let whole = false;
  let stage = 0;
  let entries = [];
  let rows = null;

  /** The rows of a stage: {line, kind}, and {gap: how many} for kept lines that are left out. */
  function entriesOf(number) {
    const all = Array.from(decode.deltas(stages[number].rows), (value) => ({ line: Math.floor(value / 3), kind: value % 3 }));
    if (whole || number === 0) return all;
    const near = new Uint8Array(all.length);
    all.forEach(({ kind }, place) => {
      if (kind !== KEPT) near.fill(1, Math.max(0, place - AROUND), place + AROUND + 1);
    });
    const found = [];
    all.forEach((entry, place) => {
      if (near[place]) found.push(entry);
      else if (found.at(-1)?.gap) found.at(-1).gap++;
      else found.push({ gap: 1 });
    });
    return found;
  }

  function fill(row, index) {
    const { line, kind, gap } = entries[index];
    if (gap) {
      row.className = "row gap";
      row.replaceChildren(list.cell("sign", ""), list.cell("operands", `… ${words.counted(gap, "line")} as before`));
      return;
    }
    row.className = `row ${["kept", "added", "removed"][kind]}`;
    row.classList.toggle("lit", selection.lit()?.origins.has(originOf[line]) ?? false);
    row.replaceChildren(list.cell("sign", SIGNS[kind]), list.cell("operands", texts[textOf[line]]));
  }

  const nodeOf = (event) => {
    const entry = entries[list.rowOf(event)];
    return entry && !entry.gap ? { kind: "origin", id: originOf[entry.line] } : null;
  };

  function button(number) {
    const { name, nodes, added, removed } = stages[number];
    const element = document.createElement("button");
    element.dataset.stage = number;
    element.append(list.cell("name", name), list.cell("counts", number ? `+${words.number(added)} −${words.number(removed)}` : words.counted(nodes, "node")));
    element.addEventListener("click", () => choose(number));
    return element;
  }

  function choose(number) {
    stage = number;
    entries = entriesOf(number);
    for (const element of panel.querySelectorAll("[data-stage]")) element.classList.toggle("chosen", Number(element.dataset.stage) === number);
    const { summary, nodes } = stages[number];
    panel.querySelector(".summary").textContent = `${summary ? `${summary}: ` : ""}${words.counted(nodes, "node")}`;
    const body = panel.querySelector(".lines");
    body.scrollTop = 0;
    light(selection.current(), selection.lit(), "");
  }

  function frame() {
    const side = document.createElement("div");
    side.className = "stages";
    side.append(...stages.map((_, number) => button(number)));
    const note = document.createElement("p");
    note.textContent = unchanged ? `${words.counted(unchanged, "pass", "passes")} changed nothing.` : "";
    side.append(note);
    const body = document.createElement("div");
    body.className = "stage";
    const head = document.createElement("p");
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.addEventListener("change", () => {
      whole = box.checked;
      choose(stage);
    });
    label.append(box, " all lines");
    head.append(list.cell("summary", ""), label);
    const scroll = document.createElement("div");
    scroll.className = "lines";
    scroll.tabIndex = 0;
    body.append(head, scroll);
    panel.replaceChildren(side, body);
    return scroll;
  }

  /** Lights the lines that belong to the selection, and brings the first of them into sight if it is held. */
  function light(chosen, lit, from) {
    const first = lit && from !== "passes" && selection.held() ? entries.findIndex(({ line }) => lit.origins.has(originOf[line])) : -1;
    if (first >= 0) rows.reveal(first);
    else rows.draw();
  }

  function start() {
    if (!panel) return;
    const scroll = frame();
    rows = list.open(scroll, () => entries.length, fill);
    scroll.addEventListener("mouseover", (event) => selection.point(nodeOf(event), "passes"));
    scroll.addEventListener("mouseleave", () => selection.point(null, "passes"));
    scroll.addEventListener("click", (event) => {
      if (nodeOf(event)) selection.hold(nodeOf(event), "passes");
    });
    selection.listen(light);
    choose(0);
  }

  /** Goes to the stage `step` further on. */
  const move = (step) => panel && choose(Math.min(stages.length - 1, Math.max(0, stage + step)));

  return { start, move, shown: () => rows && light(selection.current(), selection.lit(), "") };
})();
