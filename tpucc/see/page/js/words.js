/** Sentences and numbers for people. */
const words = (() => {
  const { code, layers, buffers, fetches, fetchOf, machine } = model;

  const { number } = dom;
  const counted = (value, singular, plural = `${singular}s`) => `${number(value)} ${value === 1 ? singular : plural}`;
  /** As `tpucc.prose.percent`: of two that are equally near the larger one. */
  const percent = (part, whole) => {
    const share = whole ? (100 * part) / whole : 0;
    if (share > 0 && share < 0.05) return "under 0.1 %";
    return share > 0 && share < 9.95 ? `${(Math.floor(10 * share + 0.5) / 10).toFixed(1)} %` : `${Math.floor(share + 0.5)} %`;
  };

  const tenths = (share) => `${(100 * share).toFixed(1)} %`;

  const UNITS = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]];
  const unitOf = (seconds) => UNITS.find(([, factor]) => seconds * factor >= 1) ?? UNITS.at(-1);
  const FORMATS = Array.from({ length: 13 }, (_, most) => new Intl.NumberFormat("en-GB", { maximumFractionDigits: most }));
  const decimal = (value, most) => FORMATS[most].format(value);

  /** A time: three significant digits in the unit that suits it, as `tpucc.sim.durations` writes it. */
  function duration(value) {
    const rounded = Number(value.toPrecision(3)); // first: 999.7 ns are 1 µs
    const [unit, factor] = unitOf(rounded);
    return `${significant(rounded * factor)} ${unit}`;
  }

  /** A number with three significant digits. */
  const significant = (value) => decimal(Number(value.toPrecision(3)), 12);

  const time = (cycles) => duration(cycles / machine.clock_hz);

  /**
   * The times of an axis, in one unit, with the decimals that tell its ticks apart.
   * @param {number[]} ticks - evenly spaced cycles, ascending
   */
  function times(ticks) {
    const [unit, factor] = unitOf(ticks.at(-1) / machine.clock_hz);
    const step = ((ticks.at(-1) - ticks[0]) / Math.max(1, ticks.length - 1) / machine.clock_hz) * factor;
    const decimals = step > 0 ? Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(step)))) : 3;
    return ticks.map((tick) => `${decimal((tick / machine.clock_hz) * factor, decimals)} ${unit}`);
  }

  const cycles = (value) => `${counted(value, "cycle")} (${time(value)})`;
  const span = (start, end) => `cycles ${number(start)}–${number(end)}`;
  const during = (start, end) => `from cycle ${number(start)} until ${number(end)}`;
  const range = (start, count) => (count === 1 ? number(start) : `${number(start)}–${number(start + count - 1)}`);

  /** Where a tile stands: its matrix of those that the layer multiplies with, its row and column in that matrix' grid, and which rows and columns of it the tile has. */
  function tilePlace(layer, place) {
    const { weights, fills, matrices } = layers[layer];
    const across = Math.ceil(weights[1] / machine.mxu);
    const lines = fills.length / across / matrices;
    const [line, column] = [Math.floor(place / across), place % across];
    const [matrix, row] = [Math.floor(line / lines), line % lines];
    let above = 0;
    for (let other = matrix * lines * across; other < line * across; other += across) above += fills[other][1];
    return { matrix, row, column, inputs: [above, fills[place][1]], outputs: [column * machine.mxu, fills[place][2]] };
  }

  /** A tile by its place, and where the layer multiplies with several matrices, by which of them it is of. */
  function tileName(layer, place) {
    const { matrix, row, column } = tilePlace(layer, place);
    const { name, matrices } = layers[layer];
    return `tile (${row}, ${column}) of ${name}${matrices > 1 ? `, matrix ${number(matrix + 1)} of ${number(matrices)}` : ""}`;
  }

  const DIAGRAMS = { graph: "operator graph", layers: "layer graph", program: "dataflow" };

  /** Where a box is, in words. */
  function placeOf({ diagram }) {
    const [root, ...opened] = insides.trail(diagram);
    return opened.length ? `inside “${insides.title(diagram)}”` : `of the ${DIAGRAMS[root]}`;
  }

  const isInput = (layer) => layers[layer].kind === "input";

  const titles = {
    line: ({ id }) => `line ${id}`,
    layer: ({ id }) => (isInput(id) ? "the work on the input" : `layer ${layers[id].name}, of kind ${layers[id].kind}`),
    instruction: ({ id }) => `instruction ${number(id)}`,
    buffer: ({ id }) => `buffer ${buffers[id].plain}`,
    tile: ({ id, place }) => tileName(id, place),
    box: (chosen) => `box ${insides.of(chosen) ? `“${insides.of(chosen).title}”` : chosen.id + 1} ${placeOf(chosen)}`,
    origin: ({ id }) => (model.origins[id].line ? `a node from line ${model.origins[id].line}` : "a node that a pass made"),
  };

  const title = (chosen) => titles[chosen.kind](chosen);

  const sentences = {
    line: ({ id }) => [(model.lines[id - 1] ?? "").trim()].filter(Boolean),
    layer: ({ id }) => ofLayer(id),
    instruction: ({ id }) => ofInstruction(id),
    buffer: ({ id }) => ofBuffer(buffers[id]),
    tile: ({ id, place }) => ofTile(id, place),
    box: (chosen) => [...costOf(chosen), ...writtenIn(chosen), ...madeBy(model.diagrams[chosen.diagram][chosen.id])],
    origin: ({ id }) => madeBy([id]),
  };

  /** The share of all cycles in tenths, as the table of layers has it. */
  const share = (own) => tenths(own / Math.max(1, model.cycles));

  /** Whether the host writes a tile: it holds values that are computed. Such tiles stand after those of weights. */
  const isWritten = (tile) => tile >= machine.weight_tiles;

  /** The matrices that a layer multiplies by, their sizes, and their tiles. */
  function multiplied({ weights, fills, matrices }) {
    const [size, tiles] = [`${number(weights[0])} × ${number(weights[1])}`, fills.length ? counted(fills.length, "tile") : "no tiles"];
    if (fills.some(([tile]) => isWritten(tile))) return `It multiplies by ${counted(matrices, "matrix", "matrices")} of ${size} that the host writes, in ${tiles}: computed values, no weights.`;
    return `Its weights are ${matrices > 1 ? `${number(matrices)} matrices of ` : ""}${size}, in ${tiles}.`;
  }

  function ofLayer(id) {
    const { weights, cycles: own, choice, rate, error } = layers[id];
    const parts = [`It takes ${cycles(own)}, ${share(own)} of all; ${rate}.`];
    if (weights[0]) parts.push(multiplied(layers[id]));
    if (choice) parts.push(`Computed ${choice}.`);
    if (error) parts.push(error);
    return parts;
  }

  /** The unit that works on an instruction, as the machine's plan names it. */
  const unitName = (id) => model.machine_view.units[model.opcodes[code.opcode[id]].unit].name;

  /** What a transfer of the host brings or takes, by the names of the values; nothing of another instruction, or of none (-1). */
  function carried(id) {
    if (id < 0 || model.unitOf(id) !== "host") return "";
    return [...new Set(code.buffersOf(id).map((buffer) => buffers[buffer].plain.replace(/, block \d+/, "")))].join(", ");
  }

  /** What an instruction is for, shortly: a transfer for its value, another for its layer. */
  const purpose = (id) => carried(id) || (layers[code.layer[id]]?.name ?? "");

  function ofInstruction(id) {
    const parts = [model.texts[id], `It ${model.said(id)}.`];
    if (carried(id)) parts.push(`It is a transfer of ${carried(id)}${isInput(code.layer[id]) ? "" : `, for ${layers[code.layer[id]].name}`}.`);
    const length = code.end[id] - code.start[id];
    if (length) parts.push(`The ${unitName(id)} works on it for ${cycles(length)}, ${during(code.start[id], code.end[id])}.`);
    else parts.push(`It takes no time; it stands at cycle ${number(code.start[id])}.`);
    if (fetchOf[id] >= 0 && fetches[fetchOf[id]].place >= 0) {
      const { layer, place } = fetches[fetchOf[id]];
      parts.push(`T${tileName(layer, place).slice(1)}.`);
    }
    return parts;
  }

  /** The operands of an instruction, as its text has them, each with its meaning. */
  function operands(id) {
    const { operands: meanings } = model.opcodes[code.opcode[id]];
    const written = model.texts[id].split(" ").slice(1).map((text) => text.replace(/,$/, ""));
    return written.flatMap((text) => {
      const [key] = text.split("=");
      return Object.hasOwn(meanings, key) ? [{ text, meaning: meanings[key] }] : [];
    });
  }

  function ofBuffer(buffer) {
    const stay = `It has rows ${range(buffer.row, buffer.rows)} of the unified buffer ${during(buffer.from, buffer.to)}.`;
    const written = buffer.plain === buffer.name ? [] : [`The program calls it ${buffer.name}.`];
    return [stay, ...written, `That is from instruction ${number(buffer.first)} to instruction ${number(buffer.last)}.`];
  }

  function ofTile(layer, place) {
    const { matrix, inputs, outputs } = tilePlace(layer, place);
    const own = fetches.filter((fetch) => fetch.layer === layer && fetch.place === place);
    const { groups, matrices, fills } = layers[layer];
    const one = isWritten(fills[place][0]) ? "the matrix that the host writes" : "the weights";
    const whose = matrices > 1 ? `matrix ${number(matrix + 1)} of ${number(matrices)}` : one;
    const apart = groups > 1 ? `, laid out with zeros between their ${number(groups)} groups` : "";
    const full = percent(fills[place][3], machine.mxu ** 2);
    const parts = [`Rows ${range(...inputs)} and columns ${range(...outputs)} of ${whose}${apart}; ${full} full.`];
    if (own.length) {
      const { read, turn } = own[0];
      const again = own.length > 1 ? ` ${own.length} times, first` : "";
      parts.push(`The layer's ${ordinal(turn)} tile, fetched${again} ${during(code.start[read], code.end[read])}.`);
    }
    return parts;
  }

  function ordinal(count) {
    const ending = { 1: "st", 2: "nd", 3: "rd" }[count % 10];
    return `${number(count)}${ending && Math.floor(count / 10) % 10 !== 1 ? ending : "th"}`;
  }

  const isHosts = ({ kind, diagram, id }) => kind === "box" && diagram === "layers" && model.hosts.includes(id);

  /** The layers whose cycles a box has: those that it stands for; of operators, which are parts of layers, those that come from them. */
  const costed = (chosen, lit) => model.box_layers[chosen.diagram]?.[chosen.id] ?? [...lit.layers].sort((a, b) => a - b);

  /** What a box costs. One of the host has no cycles of the device. */
  function costOf(chosen) {
    const lit = links.resolve(chosen);
    const [first, ...others] = isHosts(chosen) ? [...lit.layers].sort((a, b) => a - b) : costed(chosen, lit);
    if (first === undefined) return hostCost(links.hostPart(chosen));
    if (isHosts(chosen)) return [`It is the host's, for ${others.length ? "layers" : "layer"} ${[first, ...others].map((id) => layers[id].name).join(", ")}.`];
    if (!others.length) return [`Layer ${layers[first].name}. ${ofLayer(first)[0]}`];
    const sum = [first, ...others].reduce((whole, id) => whole + layers[id].cycles, 0);
    const count = number(others.length + 1);
    const whose = model.box_layers[chosen.diagram] ? `Its ${count} layers` : `The ${count} layers that come from it, alone or with others,`;
    return [`${whose} take ${cycles(sum)}, ${share(sum)} of all.`];
  }

  /** What the host's part of a box costs, of which no layer is: these instructions, each of which has the host's lane for a time. */
  function hostCost(own) {
    if (!own.length) return [];
    const sum = own.reduce((whole, id) => whole + code.end[id] - code.start[id], 0);
    return [`It is the host's: ${counted(own.length, "instruction")}, for which its lane is busy for ${cycles(sum)}.`];
  }

  /** What a box says of itself, or what it stands for. */
  function writtenIn(chosen) {
    if (insides.of(chosen)) return standsFor(insides.of(chosen));
    const written = document.getElementById(`${chosen.diagram}-b${chosen.id}`)?.querySelector("title").textContent.trim();
    return written ? [written.split("\n").join(" · ")] : [];
  }

  /** The members of a box that stands for several, the first few of them by name. */
  function standsFor(inside) {
    const more = inside.count - inside.members.length;
    const named = [...inside.members, ...(more ? [`and ${number(more)} more`] : [])];
    const closed = inside.opens ? [] : ["It does not open: the page has no room for more pictures."];
    return [`It stands for ${inside.size}: ${named.join(", ")}.`, ...closed];
  }

  const madeBy = (chosen) => {
    const passes = [...new Set(chosen.map((id) => model.origins[id].by).filter(Boolean))];
    return passes.length ? [`Made by ${passes.join(", ")}.`] : [];
  };

  /** Sentences about a selection, beside the list of everything that lights up with it. */
  const about = (chosen) => sentences[chosen.kind](chosen);

  return { number, counted, percent, tenths, significant, duration, time, times, cycles, span, during, title, about, operands, tilePlace, isHosts, isWritten, costed, carried, purpose };
})();
