/** The panel that tells about the selection in words, with links to all that belongs to it. */
const inspector = (() => {
  const MOST = 8;
  const panel = document.getElementById("inspector");

  function element(name, text, kind = "") {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  /** A button that holds something else. */
  function link(wanted, text) {
    const made = element("button", text, "link");
    made.addEventListener("click", () => selection.hold(wanted, "inspector"));
    return made;
  }

  /** A button that opens a box that stands for several. */
  function opening(chosen) {
    if (!insides.behind(chosen)) return [];
    const made = element("button", "open", "open");
    made.addEventListener("click", () => diagrams.open(chosen));
    return [made];
  }

  /** A list of links to the first of these; `count` is how many there are, if `wanted` doesn't have them all. */
  function section(title, wanted, texts, count = wanted.length) {
    if (!wanted.length) return [];
    const items = document.createElement("ul");
    wanted.slice(0, MOST).forEach((one, index) => {
      const item = document.createElement("li");
      item.append(link(one, texts(one, index)));
      items.append(item);
    });
    const shown = Math.min(MOST, wanted.length);
    if (count > shown) items.append(element("li", `and ${words.number(count - shown)} more`, "soft"));
    return [element("h3", title), items];
  }

  function related(chosen, lit) {
    const instructions = [];
    let count = 0;
    lit.instructions.forEach((mark, id) => {
      if (!mark) return;
      count++;
      if (instructions.length <= MOST) instructions.push({ kind: "instruction", id });
    });
    const layers = [...lit.layers].map((id) => ({ kind: "layer", id }));
    const stays = [...lit.buffers].map((id) => ({ kind: "buffer", id }));
    const places = new Map();
    for (const number of lit.fetches) {
      const { layer, place } = model.fetches[number];
      if (place >= 0) places.set(`${layer} ${place}`, { kind: "tile", id: layer, place });
    }
    const lines = [...lit.lines].sort((a, b) => a - b).map((id) => ({ kind: "line", id }));
    const others = (found) => found.filter((one) => !selection.same(one, chosen));
    return [
      ...section("Source", others(lines), ({ id }) => `${id}  ${model.lines[id - 1]?.trim() ?? ""}`),
      ...section(words.counted(layers.length, "layer"), others(layers), ({ id }) => model.layers[id].name),
      ...section(words.counted(places.size, "tile"), others([...places.values()]), words.title),
      ...section(words.counted(count, "instruction"), others(instructions), ({ id }) => `${words.number(id)}  ${model.texts[id]}`, count),
      ...section(words.counted(stays.length, "buffer"), others(stays), ({ id }) => model.buffers[id].name),
    ];
  }

  function waiting(lit) {
    const found = words.waited(lit.instructions);
    if (!found.length) return [];
    const items = document.createElement("ul");
    for (const [meaning, cycles] of found) items.append(element("li", `${words.cycles(cycles)}: it ${meaning}`));
    return [element("h3", "The matrix unit waits"), items];
  }

  function idle() {
    const hint = "Point at anything: a line, a box, a tile, an instruction, a bar, a buffer. All that belongs together lights up. Click to hold it, Esc lets go.";
    panel.replaceChildren(element("p", hint, "soft"));
  }

  function light(chosen, lit) {
    if (!chosen) {
      idle();
      return;
    }
    const title = words.title(chosen);
    const focused = panel.contains(document.activeElement);
    const held = selection.held() ? [element("p", "held · Esc lets go", "soft")] : [];
    panel.replaceChildren(
      element("h2", title[0].toUpperCase() + title.slice(1)),
      ...held,
      ...words.about(chosen).map((sentence, index) => element("p", sentence, index === 0 && chosen.kind === "instruction" ? "code" : "")),
      ...(lit.idle ? [element("p", "Nothing of the program comes from it.", "soft")] : []),
      ...opening(chosen),
      ...waiting(lit),
      ...related(chosen, lit),
    );
    if (focused) panel.focus({ preventScroll: true });
  }

  function start() {
    panel.tabIndex = -1;
    selection.listen(light);
    idle();
  }

  return { start };
})();
