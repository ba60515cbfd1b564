/** The band above the timeline: the layers, and above them the calls of the source that they are in. */
const band = (() => {
  const [ROW, LEAST, DEEPEST, MARGINS, LETTER] = [17, 3, 2, 6, 5];
  const { layer_spans: turns, layers, calls } = model;

  /** Neighbouring turns of one key as one stretch; those without a key are left out. */
  function stretches(keyOf) {
    const found = [];
    for (const [layer, from, to] of turns) {
      const key = keyOf(layer);
      const last = found.at(-1);
      if (last && last.key === key) {
        last.to = to;
        last.layers.add(layer);
      } else {
        found.push({ key, from, to, layers: new Set([layer]) });
      }
    }
    return found.filter(({ key }) => key !== undefined);
  }

  /** The outermost calls that have more than one layer each; the layers themselves. */
  function levels() {
    const deepest = Math.max(0, ...calls.of.map((path) => path.length));
    const found = Array.from({ length: deepest }, (_, depth) => stretches((layer) => calls.of[layer][depth]));
    return [...found.filter((level) => level.some((one) => one.layers.size > 1)).slice(0, DEEPEST), stretches((layer) => layer)];
  }

  const rows = levels();
  const height = rows.length * ROW + 2;
  let boxes = [];

  const isLayers = (row) => row === rows.length - 1;
  /** A call by its name, and of one that a loop repeats by its step. */
  const named = (key) => [calls.name[key], calls.step[key]].filter(Boolean).join(", ");
  const nameOf = (row, key) => (isLayers(row) ? layers[key].name : named(key));
  const counted = (row, count) => words.counted(count, isLayers(row) ? "layer" : "call");

  /** The stretch of the row above in which one begins. */
  const above = (row, { from }) => rows[row - 1]?.findLast((one) => one.from <= from);

  /**
   * What of a row can be seen: boxes of one stretch, and boxes of neighbours that are too narrow for their names. These are of one stretch of
   * the row above, unless they have no room for how many they are.
   */
  function visible(context, row, x) {
    const [from, to] = axis.window();
    const found = [];
    const written = (box) => fitted(context, box, box.right - box.left - MARGINS);
    const isCounted = (box) => kinds(box) > 1 && written(box) !== "";
    for (const stretch of rows[row].filter((one) => one.to > from && one.from < to)) {
      const box = { row, left: x(stretch.from), right: x(stretch.to), stretches: [stretch] };
      const last = found.at(-1);
      box.narrow = !written(box);
      if (box.narrow && last?.narrow && box.left - last.right < LEAST && (above(row, last.stretches[0]) === above(row, stretch) || !isCounted(last))) {
        last.stretches.push(stretch);
        last.right = box.right;
      } else {
        found.push(box);
      }
    }
    return found;
  }

  /** What several names with dots begin with in common: `stage1.block2`; nothing if it is nothing. */
  function prefix(texts) {
    const [first, ...others] = texts.map((text) => text.split("."));
    const differs = first.findIndex((part, index) => others.some((parts) => parts[index] !== part));
    return first.slice(0, differs < 0 ? first.length : differs).join(".");
  }

  /** What the layers with weights of a call have in common in their names, if no other call's have it; nor other layers, if it names one. */
  const commons = (() => {
    const own = new Map();
    calls.of.forEach((path, layer) => path.forEach((call) => layers[layer].weights[0] && own.set(call, [...(own.get(call) ?? []), layers[layer].name])));
    const isElsewhere = (call, text) => layers.some(({ name }, layer) => `${name}.`.startsWith(`${text}.`) && !calls.of[layer].includes(call));
    const shared = (call, texts) => {
      const text = texts.length > 1 ? prefix(texts) : "";
      return texts.includes(text) && isElsewhere(call, text) ? "" : text;
    };
    const found = new Map([...own].map(([call, texts]) => [call, shared(call, texts)]));
    const all = [...found.values()];
    return (call) => (all.filter((text) => text === found.get(call)).length === 1 && found.get(call)) || "";
  })();

  /** How many layers or calls a box stands for: one that is computed in turns with others may have several of its stretches. */
  const kinds = ({ stretches: own }) => new Set(own.map(({ key }) => key)).size;

  /** The names of a box, the longest first: of a layer its own and the ends of it, of a call its step or what its layers' names begin with. */
  function names(box) {
    const { row, stretches: own } = box;
    const [{ key }] = own;
    if (kinds(box) > 1) return [counted(row, kinds(box))];
    if (!isLayers(row)) {
      const [common, step] = [commons(key), calls.step[key]];
      if (common === calls.name[key]) return [common];
      if (common) return [`${calls.name[key]} · ${common}`, common, common.split(".").at(-1)];
      return step ? [named(key), step, step.split(" of ")[0], step.split(" ")[1]] : [named(key)];
    }
    const parts = layers[key].name.split(".");
    return parts.map((_, index) => parts.slice(index).join(".")).filter((ending, index) => index === 0 || Number.isNaN(Number(ending)));
  }

  /** The longest of a box's names that has room; of the last, as much as has, with dots; nothing if that is hardly any, or a count. */
  function fitted(context, box, room) {
    if (room < LETTER) return "";
    const texts = names(box);
    const found = texts.find((text) => context.measureText(text).width <= room);
    if (found || kinds(box) > 1) return found ?? "";
    let kept = texts.at(-1);
    while (kept.length > 2 && context.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
    return kept.length > 2 ? `${kept}…` : "";
  }

  /** The colours of a box: of layers those of the unit that computes them, as in the buffer. */
  function paint(box) {
    if (kinds(box) > 1) return ["grid", "rule"];
    if (!isLayers(box.row)) return ["band", "rule"];
    const { colour } = layers[box.stretches[0].key];
    return [colour, `${colour}-line`];
  }

  function boxed(context, box, width, [fill, line]) {
    const [left, right] = [Math.max(box.left, axis.LEFT), Math.min(box.right, width - axis.RIGHT)];
    const high = ROW - 2;
    const y = box.row * ROW + 1;
    context.fillStyle = colours.of(fill);
    context.fillRect(left, y, right - left, high);
    context.fillStyle = colours.of(line);
    context.fillRect(left, y, Math.min(1, right - left), high);
    const text = fitted(context, box, right - left - MARGINS);
    context.fillStyle = colours.of("ink");
    if (text) context.fillText(text, left + 4, y + 12);
  }

  function draw(context, width, x) {
    boxes = rows.flatMap((_, row) => visible(context, row, x));
    for (const box of boxes) boxed(context, box, width, paint(box));
  }

  /** Draws the boxes once more that have something of what is lit. */
  function light(context, width, lit) {
    const isLit = ({ stretches: own }) => own.some(({ layers: of }) => [...of].some((layer) => lit.layers.has(layer)));
    for (const box of boxes.filter(isLit)) boxed(context, box, width, ["mark", "glow"]);
  }

  /** The box at a place of the canvas. */
  const at = (x, y) => boxes.find((box) => y >= box.row * ROW && y < (box.row + 1) * ROW && x >= box.left && x < box.right);

  /** What a box stands for: its layer, or the line of its call; nothing if it stands for several. */
  function selected(box) {
    if (kinds(box) > 1) return null;
    const [{ key }] = box.stretches;
    return isLayers(box.row) ? { kind: "layer", id: key } : { kind: "line", id: calls.line[key] };
  }

  /** A box in words. */
  function about(box) {
    const { row, stretches: own } = box;
    const [from, to] = [own[0].from, own.at(-1).to];
    if (kinds(box) > 1) {
      const all = [...new Set(own.map(({ key }) => nameOf(row, key)))];
      const more = all.length > 8 ? ` and ${all.length - 8} more` : "";
      return `${names(box)[0]}, too narrow for their names: ${all.slice(0, 8).join(", ")}${more}\n${words.span(from, to)} · a click shows them`;
    }
    const [layer] = own[0].layers;
    const path = (calls.of[layer] ?? []).map((call) => `${named(call)} (line ${calls.line[call]})`);
    const where = isLayers(row) ? path.join(" › ") : `a call in line ${calls.line[own[0].key]}`;
    const cycles = own.reduce((sum, one) => sum + one.to - one.from, 0);
    return `${[nameOf(row, own[0].key), where].filter(Boolean).join(" · ")}\n${words.span(from, to)} · ${words.percent(cycles, model.cycles)} of all`;
  }

  /** Shows what a box stands for as wide as the window. */
  const zoom = ({ stretches: own }) => axis.time.show(own[0].from, own.at(-1).to);

  return { height, draw, light, at, selected, about, zoom };
})();
