/**
 * What belongs together, through the origins of the source.
 *
 * A selection is one of {kind: "line", id}, {kind: "layer", id}, {kind: "instruction", id}, {kind: "buffer", id},
 * {kind: "tile", id: layer, place}, {kind: "box", id, diagram} and {kind: "origin", id}.
 */
const links = (() => {
  const { origins, layers, calls, code, buffers, fetches, fetchOf, diagrams } = model;

  /** Whether all of `few` are among `many`. */
  const within = (few, many) => few.every((item) => many.includes(item));

  /** Whether `a` is a part of `b`: an operator of the layer that it was fused into, say. */
  const partOf = (a, b) => within(a.spans, b.spans) && within(a.calls, b.calls);

  /** The origins of which one of these is a part, or that are a part of it. One without a place in the source has itself alone. */
  function related(chosen) {
    const found = new Set(chosen);
    for (const number of chosen) {
      const origin = origins[number];
      if (!origin.spans.length) continue;
      origins.forEach((other, index) => {
        if (other.spans.length && (partOf(origin, other) || partOf(other, origin))) found.add(index);
      });
    }
    return found;
  }

  const indices = (list, test) => new Set(list.flatMap((item, index) => (test(item, index) ? [index] : [])));
  const linesOf = (chosen) => new Set([...chosen].flatMap((number) => origins[number].lines));

  /** A mark for each instruction for which `test` holds. */
  function marks(test) {
    const mask = new Uint8Array(code.count);
    for (let index = 0; index < code.count; index++) mask[index] = test(index) ? 1 : 0;
    return mask;
  }

  /** Everything that the layers with one of these origins do. */
  function ofOrigins(chosen, lines) {
    const own = indices(layers, (layer) => chosen.has(layer.origin));
    return { ...ofLayers(own), origins: chosen, lines };
  }

  function ofLayers(own) {
    return {
      layers: own,
      instructions: marks((index) => own.has(code.layer[index])),
      fetches: indices(fetches, (fetch) => own.has(fetch.layer)),
      buffers: indices(buffers, (buffer) => own.has(buffer.layer)),
    };
  }

  /** These instructions alone, with the tiles and the buffers that they use. `layer` is whose they are. */
  function ofInstructions(mask, layer) {
    const [tiles, stays] = [new Set(), new Set()];
    for (let index = 0; index < code.count; index++) {
      if (!mask[index]) continue;
      if (fetchOf[index] >= 0) tiles.add(fetchOf[index]);
      for (const buffer of code.buffersOf(index)) stays.add(buffer);
    }
    return { ...ofLayer(layer), instructions: mask, fetches: tiles, buffers: stays };
  }

  function ofLayer(id) {
    if (!layers[id]) return { ...ofLayers(new Set()), origins: new Set(), lines: new Set() };
    const { origin } = layers[id];
    return { ...ofLayers(new Set([id])), origins: related([origin]), lines: linesOf([origin]) };
  }

  /** The layers that a box stands for, or has the weights of: none for one of an operator, which is a part of layers. */
  function ownLayers({ id, diagram }) {
    const [own, beside] = [model.box_layers[diagram] ?? [], model.beside[diagram]?.[id]];
    return own[id]?.length ? own[id] : (own[beside] ?? []);
  }

  /** The instructions of the host's part of a box: none of one that has no part of the host's. */
  const hostPart = ({ id, diagram }) => model.box_instructions[diagram]?.[id] ?? [];

  /** What a box stands for: its layers, each turn of a loop apart, and the host's part in it; without either all that its origins have. */
  function ofBox(chosen) {
    const [own, host, from] = [ownLayers(chosen), hostPart(chosen), diagrams[chosen.diagram][chosen.id]];
    const [all, lines] = [related(from), linesOf(from)];
    if (!own.length && !host.length) return ofOrigins(all, lines);
    const found = { ...ofLayers(new Set(own)), origins: all, lines };
    for (const index of host) {
      found.instructions[index] = 1;
      for (const buffer of code.buffersOf(index)) found.buffers.add(buffer);
    }
    return found;
  }

  /** What comes from the calls of the `def` that a line begins. */
  const ofDef = (line) => related(layers.filter((_, layer) => calls.of[layer].some((call) => calls.def[call] === line)).map(({ origin }) => origin));

  const resolvers = {
    line: ({ id }) => ofOrigins(new Set([...indices(origins, (origin) => origin.lines.includes(id)), ...ofDef(id)]), new Set([id])),
    box: ofBox,
    origin: ({ id }) => ofOrigins(related([id]), linesOf([id])),
    layer: ({ id }) => ofLayer(id),
    instruction: ({ id }) => ofInstructions(marks((index) => index === id), code.layer[id]),
    buffer: ({ id }) => ({
      ...ofInstructions(marks((index) => code.uses(index, id)), buffers[id].layer),
      buffers: new Set([id]),
    }),
    tile: ({ id, place }) => ofInstructions(marks((index) => isOf(fetches[fetchOf[index]], id, place)), id),
  };

  const isOf = (fetch, layer, place) => fetch !== undefined && fetch.layer === layer && fetch.place === place;

  const known = {
    line: ({ id }) => id >= 1 && id <= model.lines.length,
    box: ({ id, diagram }) => Object.hasOwn(diagrams, diagram) && id in diagrams[diagram],
    origin: ({ id }) => id in origins,
    layer: ({ id }) => id in layers,
    instruction: ({ id }) => id >= 0 && id < code.count,
    buffer: ({ id }) => id in buffers,
    tile: ({ id, place }) => id in layers && place in layers[id].fills,
  };

  /** Whether there is such a thing on this page. */
  const exists = (selection) => Object.hasOwn(known, selection.kind) && Number.isInteger(selection.id) && known[selection.kind](selection);

  /** Whether a box lights up: with its layers if it has some, else with its origins; and with an instruction of the host's part. */
  function isLit(box, { layers: lit, origins: from, instructions }) {
    if (hostPart(box).some((index) => instructions[index])) return true;
    const own = lit.size ? ownLayers(box) : [];
    return own.length ? own.some((layer) => lit.has(layer)) : diagrams[box.diagram][box.id].some((origin) => from.has(origin));
  }

  /** What lights up with a selection: sets of lines, origins, layers, fetches and buffers, and a mark for each instruction. */
  const resolve = (selection) => resolvers[selection.kind](selection);

  return { resolve, exists, isLit, hostPart };
})();
