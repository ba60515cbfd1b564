/** The panel that tells about the selection in words, with links to all that belongs to it. */
const inspector = (() => {
  const MOST = 8;
  const panel = document.getElementById("inspector");
  const { make } = dom;

  /** A button that holds something else. */
  const link = (wanted, text) => make("button", { class: "link", click: () => selection.hold(wanted, "inspector") }, text);

  /** A button that opens a box that stands for several. */
  const opening = (chosen) => (insides.behind(chosen) ? [make("button", { class: "open", click: () => diagrams.open(chosen) }, "open")] : []);

  /** A list of links to the first of these; `count` is how many there are, if `wanted` doesn't have them all. */
  function section(title, wanted, texts, count = wanted.length) {
    if (!wanted.length) return [];
    const items = wanted.slice(0, MOST).map((one) => make("li", {}, link(one, texts(one))));
    const more = count - items.length;
    return [make("h3", {}, title), make("ul", {}, ...items, ...(more ? [make("li", { class: "soft" }, `and ${words.number(more)} more`)] : []))];
  }

  /** Each operand of an instruction with its meaning. */
  function operands(chosen) {
    const found = chosen.kind === "instruction" ? words.operands(chosen.id) : [];
    if (!found.length) return [];
    return [make("h3", {}, "Operands"), make("ul", { class: "operands" }, ...found.map(({ text, meaning }) => make("li", {}, make("code", {}, text), " ", ...tips.sentence(meaning))))];
  }

  /** A sentence about something. Its words explain themselves, unless it is text of the source or of the listing, or has names of boxes. */
  function told({ kind }, sentence, index) {
    if (kind === "instruction" && index === 0) return make("p", { class: "code" }, sentence);
    return make("p", {}, ...(kind === "layer" || kind === "instruction" ? tips.sentence(sentence) : [sentence]));
  }

  function related(chosen, lit) {
    const ids = [...lit.instructions.keys()].filter((id) => lit.instructions[id]);
    const instructions = ids.slice(0, MOST + 1).map((id) => ({ kind: "instruction", id }));
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
      ...section(words.counted(ids.length, "instruction"), others(instructions), ({ id }) => `${words.number(id)}  ${model.texts[id]}`, ids.length),
      ...section(words.counted(stays.length, "buffer"), others(stays), ({ id }) => model.buffers[id].plain),
    ];
  }

  function idle() {
    const hint = "Point at anything: a line, a box, a tile, an instruction, a bar, a buffer. All that belongs together lights up. Click to hold it, Esc lets go.";
    panel.replaceChildren(make("p", { class: "soft" }, hint));
  }

  function light(chosen, lit) {
    if (!chosen) {
      idle();
      return;
    }
    const title = words.title(chosen);
    const focused = panel.contains(document.activeElement);
    const held = selection.held() ? [make("p", { class: "soft" }, "held · Esc lets go")] : [];
    panel.replaceChildren(
      make("h2", {}, title[0].toUpperCase() + title.slice(1)),
      ...held,
      ...words.about(chosen).map((sentence, index) => told(chosen, sentence, index)),
      ...(lit.idle ? [make("p", { class: "soft" }, "Nothing of the program comes from it.")] : []),
      ...operands(chosen),
      ...opening(chosen),
      ...accounting.about(chosen, lit),
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
