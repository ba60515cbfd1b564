/** The program as the page knows it: the data of the page, decoded, with what follows from it. */
const model = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SWITCH = 128;

  /** Which buffers an instruction has: those of its operands, and the further ones of a transfer that moves several. */
  function operands(code) {
    const own = [code.source, code.source2, code.target].map(decode.deltas);
    const [instructions, buffers] = [code.others.instruction, code.others.buffer].map(decode.deltas);
    const others = new Map();
    instructions.forEach((index, pair) => others.set(index, [...(others.get(index) ?? []), buffers[pair]]));
    return {
      buffersOf: (index) => [...own.map((column) => column[index]).filter((buffer) => buffer >= 0), ...(others.get(index) ?? [])],
      uses: (index, buffer) => own.some((column) => column[index] === buffer) || (others.get(index)?.includes(buffer) ?? false),
    };
  }

  /** One entry a column for each instruction; `end` is exclusive. */
  function columns(code) {
    const octets = decode.octets(code.opcode);
    const start = decode.deltas(code.start);
    return {
      count: code.count,
      opcode: octets.map((octet) => octet % SWITCH),
      switches: octets.map((octet) => (octet >= SWITCH ? 1 : 0)),
      layer: decode.deltas(code.layer),
      start,
      end: decode.plain(code.length).map((length, index) => start[index] + length),
      ...operands(code),
    };
  }

  /**
   * The name of a buffer in words: `image, copy, part 2` for `image.i8#copy0.0#1`. Behind the value's name stand the number of its copy, its
   * block of columns, and the part of the batch.
   */
  function plainly(name) {
    const [, value, copy, block, part] = /^(.+?)(#copy\d+)?\.(\d+)(?:#(\d+))?$/.exec(name) ?? [name, name];
    const parts = [copy && "copy", Number(block) && `block ${Number(block) + 1}`, part && `part ${Number(part) + 1}`];
    return [value.replace(/\.i(8|16)$/, "").replace(/^#row(-?\d+)$/, "border of $1"), ...parts].filter(Boolean).join(", ");
  }

  /** The stays of buffers, by rows of the unified buffer [row, row + rows) and instructions [first, last]. */
  function stays(buffers) {
    const [names, kinds] = [buffers.name.split("\n"), buffers.kind.split(" ")];
    const [layer, start, first, last] = [buffers.layer, buffers.start, buffers.first, buffers.last].map(decode.deltas);
    const rows = decode.plain(buffers.rows);
    return Array.from(start, (_, index) => ({
      name: names[index],
      plain: plainly(names[index]),
      kind: kinds[index],
      layer: layer[index],
      row: start[index],
      rows: rows[index],
      first: first[index],
      last: last[index],
      from: code.start[first[index]],
      to: Math.max(code.end[last[index]], code.start[first[index]]),
    }));
  }

  /** The stretches in which the matrix unit waits. */
  function waiting(waits) {
    const start = decode.deltas(waits.start);
    return {
      roots: waits.roots,
      start,
      end: decode.plain(waits.length).map((length, index) => start[index] + length),
      root: decode.octets(waits.root),
      instruction: decode.deltas(waits.instruction),
    };
  }

  /** Each fetch of a tile: the `read_weights`, the layer, the tile's place in the layer's grid, and which turn of the layer it is. */
  function fetching() {
    const read = data.opcodes.findIndex((opcode) => opcode.name === "read_weights");
    const places = decode.plain(data.places);
    const turns = data.layers.map(() => 0);
    const found = [];
    for (let index = 0; index < code.count; index++) {
      if (code.opcode[index] !== read) continue;
      const layer = code.layer[index];
      found.push({ read: index, layer, place: places[found.length], turn: ++turns[layer] });
    }
    return found;
  }

  /** For each instruction the fetch that it is (`read_weights`) or whose tile it uses (multiplies); -1 for others. */
  function usedFetches() {
    const matrix = data.units.indexOf("matrix");
    const used = new Int32Array(code.count).fill(-1);
    fetches.forEach((fetch, number) => (used[fetch.read] = number));
    let current = -1;
    for (let index = 0; index < code.count; index++) {
      if (data.opcodes[code.opcode[index]].unit !== matrix) continue;
      current += code.switches[index];
      used[index] = current < fetches.length ? current : -1;
    }
    return used;
  }

  /** A function that says what an instruction does, as a part of a sentence: its form, with its numbers in it. */
  function telling({ forms, form, numbers }) {
    const [of, values] = [decode.deltas(form), decode.plain(numbers)];
    const parts = forms.map((text) => text.split("#"));
    const starts = new Float64Array(of.length + 1);
    of.forEach((number, index) => (starts[index + 1] = starts[index] + parts[number].length - 1));
    return (index) => parts[of[index]].map((part, place) => (place ? dom.number(values[starts[index] + place - 1]) : "") + part).join("");
  }

  /** Lines of words that are stored once. */
  function lines({ words: stored, numbers, counts }) {
    const [all, of] = [stored.split("\n"), Array.from(decode.plain(numbers))];
    let end = 0;
    return Array.from(decode.plain(counts), (count) => of.slice(end, (end += count)).map((number) => all[number]).join(" "));
  }

  /** For each picture, and each of its boxes, what `read` makes of its entry. */
  const ofBoxes = (entries, read) => Object.fromEntries(Object.entries(entries).map(([name, boxes]) => [name, Object.fromEntries(Object.entries(boxes).map(([id, entry]) => [id, read(entry)]))]));

  const code = columns(data.code);
  const buffers = data.buffers.name ? stays(data.buffers) : [];
  const waits = waiting(data.waits);
  const fetches = fetching();
  const fetchOf = usedFetches();
  const shifts = decode.deltas(data.shifts);
  const texts = lines(data.text);
  const said = telling(data.sentences);
  const unitOf = (index) => data.units[data.opcodes[code.opcode[index]].unit];
  const box_instructions = ofBoxes(data.box_instructions, (packed) => [...decode.deltas(packed)]);
  return { ...data, code, buffers, waits, fetches, fetchOf, shifts, texts, said, unitOf, box_instructions };
})();
