/**
 * The weights of a layer as their tiles: how full each is, and when it has its turn; and one of them as a square with its cells in use.
 * Inputs go down and outputs to the right, or the other way round where the grid fills the pane better.
 */
const tiles = (() => {
  const MOST = 4096;
  const [LARGEST, SMALLEST, SIDE] = [96, 10, 420];
  const [LEAST, BESIDE, OTHERS] = [192, 32, 330]; // pixels: of a grid, and of the pane that it leaves at its sides, and for the words and the other layers
  const [OPENED, AXIS] = [128, 18]; // pixels: of the tile that is drawn large, and of the words at a side of it and of the grid
  const framed = matchMedia("(min-width: 900px) and (min-height: 560px)"); // the pane has a height of its own
  const panel = document.getElementById("view-tiles");
  const withTiles = model.layers.flatMap((layer, id) => (layer.fills.length ? [id] : []));
  let shown = -1;
  let large = 0; // the place of the tile that is drawn large
  let room = [SIDE, SIDE];

  /** For each place of a layer's grid the turns of its tile. */
  function turnsOf(id) {
    const turns = model.layers[id].fills.map(() => []);
    for (const fetch of model.fetches) if (fetch.layer === id && fetch.place >= 0) turns[fetch.place].push(fetch.turn);
    return turns;
  }

  /** The grid's rows of inputs and columns of outputs, how large a tile is drawn, and whether inputs go to the right. */
  function shapeOf(id) {
    const { fills, weights } = model.layers[id];
    const across = Math.ceil(weights[1] / model.machine.mxu);
    const down = Math.ceil(fills.length / across);
    const sides = [[across, down], [down, across]].map((counts) => Math.min(LARGEST, ...counts.map((count, axis) => (room[axis] - AXIS) / count)));
    const turned = sides[1] > sides[0];
    return { across, down, turned, side: Math.max(SMALLEST, ...sides) };
  }

  /** The words of two axes: what goes to the right, and what goes down. */
  function axes([right, down]) {
    return [dom.svg("text", { x: AXIS, y: 12, class: "f-soft" }, `${right} →`), dom.svg("text", { class: "f-soft", transform: `translate(5 ${AXIS}) rotate(90)` }, `${down} →`)];
  }

  const sized = (width, height) => ({ width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });

  function grid(id) {
    const { name, fills, weights } = model.layers[id];
    const { across, down, turned, side } = shapeOf(id);
    const turns = turnsOf(id);
    const cells = fills.map((fill, place) => cell({ id, place }, side, [place % across, Math.floor(place / across)], turned, fill, turns[place]));
    const ends = [`${words.number(weights[1])} outputs`, `${words.number(weights[0])} inputs`];
    const [width, height] = turned ? [down, across] : [across, down];
    const named = axes(turned ? [...ends].reverse() : ends);
    const least = 8 * Math.max(...ends.map((each) => each.length)); // so that the words of both axes have room
    const size = sized(AXIS + Math.max(width * side, least) + 2, AXIS + Math.max(height * side, least) + 2);
    return dom.svg("svg", { ...size, "aria-label": `tiles of ${name}` }, ...named, dom.svg("g", { transform: `translate(${AXIS} ${AXIS})` }, ...cells));
  }

  /** The kind of a tile: of weights, or of values that the host writes. */
  const kindOf = (tile) => (words.isWritten(tile) ? "host" : "weights");

  function cell({ id, place }, side, [column, row], turned, [tile, rows, columns, used], turns) {
    const { mxu } = model.machine;
    const inner = side - 2;
    const [[x, y], [width, height]] = [[column, row].map((at) => at * side + 1), [columns, rows].map((cells) => Math.max(1.5, (inner * cells) / mxu))].map((pair) => (turned ? pair.reverse() : pair));
    const number = turns.length ? words.number(turns[0]) : "";
    const fits = inner >= 18 && number.length * 7 < inner;
    return dom.svg("g", { class: "tile", "data-place": place, "data-layer": id },
      dom.svg("rect", { x: x - 0.5, y: y - 0.5, width: inner + 1, height: inner + 1, class: "rest" }),
      dom.svg("rect", { x, y, width, height, class: `k-${kindOf(tile)}` }),
      ...(fits ? [dom.svg("text", { x: x + inner / 2, y: y + inner / 2 + 4, "text-anchor": "middle", class: "f-ink" }, number)] : []),
      dom.svg("title", {}, `${words.title({ kind: "tile", id, place })} · ${rows} × ${columns} of ${mxu} × ${mxu}, ${words.percent(used, mxu ** 2)} full${number && ` · turn ${number}`}`));
  }

  /** One tile as the array holds it, the cells in use in its corner: its rows are inputs, its columns outputs. */
  function opened(id, place) {
    const { mxu } = model.machine;
    const [tile, rows, columns, used] = model.layers[id].fills[place];
    const { turned } = shapeOf(id);
    const [width, height] = (turned ? [rows, columns] : [columns, rows]).map((cells) => (OPENED * cells) / mxu);
    const ends = [`${columns} of ${mxu} columns`, `${rows} of ${mxu} rows`];
    const picture = dom.svg("svg", { ...sized(AXIS + OPENED + 2, AXIS + OPENED + 2), "aria-label": `tile ${place} in the array, of ${model.layers[id].name}` },
      ...axes(turned ? ends.reverse() : ends),
      dom.svg("g", { transform: `translate(${AXIS} ${AXIS})` }, dom.svg("rect", { x: 0.5, y: 0.5, width: OPENED + 1, height: OPENED + 1, class: "rest" }), dom.svg("rect", { x: 1, y: 1, width, height, class: `k-${kindOf(tile)}` })));
    const at = words.title({ kind: "tile", id, place }).replace(` of ${model.layers[id].name}`, "");
    return dom.make("figure", { class: "opened" }, picture, dom.make("figcaption", { class: "soft" }, `${at}, ${words.percent(used, mxu ** 2)} full`));
  }

  const pick = (event) => selection.hold({ kind: "layer", id: Number(event.target.value) }, "tiles");
  const [detail, below] = [dom.make("div"), dom.make("div")];
  const picker = dom.make("select", { "aria-label": "layer", change: pick }, ...withTiles.map((layer) => new Option(model.layers[layer].name, layer)));

  function head(id) {
    const { fills, weights, choice, groups, matrices } = model.layers[id];
    const full = words.percent(fills.reduce((sum, [, , , used]) => sum + used, 0), fills.length * model.machine.mxu ** 2);
    const stack = matrices > 1 ? `${words.number(matrices)} matrices of ` : "";
    const size = `${stack}${words.number(weights[0])} inputs × ${words.number(weights[1])} outputs${groups > 1 ? ` in ${words.number(groups)} groups of channels` : ""}`;
    picker.value = id;
    const fetched = words.counted(model.fetches.filter(({ layer }) => layer === id).length, "fetch", "fetches");
    const said = ` ${size}: ${words.counted(fills.length, "tile")}, ${full} full, ${fetched} in all${choice ? `; ${choice}` : ""}.`;
    return dom.make("p", {}, picker, ...tips.sentence(said));
  }

  /** All layers in small: as many tiles as may be drawn, and a sentence about the others. */
  function overview() {
    const drawn = [];
    let count = 0;
    for (const id of withTiles) {
      count += model.layers[id].fills.length;
      if (count > MOST) break;
      drawn.push(id);
    }
    const used = drawn.flatMap((id) => model.layers[id].fills.map(([tile]) => tile));
    const distinct = new Set(used).size;
    const written = new Set(used.filter((tile) => kindOf(tile) === "host")).size;
    const whose = written ? ` (the host writes ${words.number(written)} of them, which are grey)` : "";
    const shared = used.length > distinct ? ` The layers' counts add up to ${words.number(used.length)}: equal tiles are stored once, and counted where they are used.` : "";
    const seen = new Set(drawn);
    const fetched = model.fetches.filter(({ layer }) => seen.has(layer)).length;
    const others = withTiles.slice(drawn.length).map((id) => model.layers[id].name);
    const left = others.length ? ` Not drawn, as the page has no room: ${others.slice(0, 8).join(", ")}${others.length > 8 ? ` and ${words.number(others.length - 8)} more` : ""}.` : "";
    const said = `${words.counted(drawn.length, "layer")} with tiles, ${words.number(distinct)} distinct ${distinct === 1 ? "tile" : "tiles"}${whose}, ${words.counted(fetched, "fetch", "fetches")}: the filled part of a tile is used.${shared}${left}`;
    return [dom.make("h2", {}, "All layers"), dom.make("p", { class: "soft" }, said), dom.make("div", { class: "cells small" }, ...drawn.map(small))];
  }

  /** A layer's grid in small, as a button that holds it. */
  function small(id) {
    const { name, fills, weights } = model.layers[id];
    const { mxu } = model.machine;
    const across = Math.ceil(weights[1] / mxu);
    const down = Math.ceil(fills.length / across);
    const side = Math.min(18, Math.max(1, 96 / Math.max(across, down)));
    const inner = Math.max(0.6, side - 1);
    const cells = fills.flatMap(([tile, rows, columns], place) => {
      const [x, y] = [(place % across) * side, Math.floor(place / across) * side];
      const [width, height] = [columns, rows].map((used) => (inner * used) / mxu);
      return [dom.svg("rect", { x, y, width: inner, height: inner, class: "rest" }), dom.svg("rect", { x, y, width, height, class: `s-${kindOf(tile)}` })];
    });
    const picture = dom.svg("svg", { width: across * side, height: down * side, "aria-hidden": "true" }, ...cells);
    return dom.make("button", { "data-small": id, click: () => selection.hold({ kind: "layer", id }, "tiles") }, picture, dom.make("span", {}, name), dom.make("small", {}, words.counted(fills.length, "tile")));
  }

  function draw(id) {
    [shown, large] = [id, 0];
    const few = model.layers[id].fills.length <= MOST;
    below.replaceChildren(...(few ? explained(id) : [dom.make("p", {}, "Too many tiles to draw.")]));
    detail.replaceChildren(head(id), below);
  }

  /** The grid below what it shows: numbers, if its tiles have room for them. */
  function explained(id) {
    const picture = grid(id);
    const turn = picture.querySelector(".tile text") ? "the number is its turn in the layer" : "point at it for its turn in the layer";
    const zeros = model.layers[id].groups > 1 ? " In the filled part are zeros between the groups." : "";
    const stack = model.layers[id].matrices > 1 ? ` The matrices stand one ${shapeOf(id).turned ? "beside" : "below"} the other.` : "";
    const note = dom.make("p", {}, `The filled part of a tile is used, the rest is padding; ${turn}.${zeros}${stack}`);
    return [note, dom.make("div", { class: "large" }, picture, opened(id, large))];
  }

  /** Draws the grid anew where the pane has more room for it, or less. */
  function fit() {
    if (!panel.clientWidth) return;
    const width = panel.clientWidth - BESIDE;
    const found = [width > 2 * (OPENED + AXIS) ? width - OPENED - AXIS - BESIDE : width, framed.matches ? Math.min(panel.clientHeight, innerHeight) - OTHERS : SIDE].map((each) => Math.max(LEAST, each));
    if (found.every((each, axis) => each === room[axis])) return;
    room = found;
    if (below.querySelector("svg")) below.replaceChildren(...explained(shown));
    light(selection.current(), selection.lit());
  }

  /** Says of a layer without tiles why it has none. */
  function missing(id) {
    shown = id;
    picker.selectedIndex = -1;
    below.replaceChildren();
    const said = `${model.layers[id].name} has no weight tiles: ${model.layers[id].untiled}.`;
    detail.replaceChildren(dom.make("p", {}, ...tips.sentence(said)), dom.make("p", {}, "Show the tiles of ", picker));
  }

  /** The first layer with tiles among what is lit, else the first of all. */
  function layerOf(chosen, lit) {
    if (chosen.kind === "tile") return chosen.id;
    const all = [...lit.layers];
    return all.find((id) => withTiles.includes(id)) ?? all[0];
  }

  /** Draws the held tile large, if it is one of the layer that is shown. */
  function enlarge(chosen) {
    if (!selection.held() || chosen?.kind !== "tile" || chosen.id !== shown || chosen.place === large) return;
    large = chosen.place;
    below.querySelector(".opened")?.replaceWith(opened(shown, large));
  }

  function light(chosen, lit) {
    const layer = selection.held() ? layerOf(chosen, lit) : undefined;
    if (layer !== undefined && layer !== shown) (withTiles.includes(layer) ? draw : missing)(layer);
    enlarge(chosen);
    const own = lit ? [...lit.fetches].map((id) => model.fetches[id]).filter((fetch) => fetch.layer === shown) : [];
    for (const button of panel.querySelectorAll("[data-small]")) button.classList.toggle("lit", lit?.layers.has(Number(button.dataset.small)) ?? false);
    const places = new Set(own.map(({ place }) => place));
    for (const tile of panel.querySelectorAll(".tile")) {
      const place = Number(tile.dataset.place);
      tile.classList.toggle("lit", places.has(place));
      tile.classList.toggle("held", selection.same(chosen, { kind: "tile", id: shown, place }));
    }
  }

  const tileOf = (event) => {
    const tile = event.target.closest(".tile");
    return tile ? { kind: "tile", id: Number(tile.dataset.layer), place: Number(tile.dataset.place) } : null;
  };

  function start() {
    if (!withTiles.length) {
      panel.textContent = "No layer has weight tiles.";
      return;
    }
    panel.replaceChildren(detail, ...overview());
    draw(withTiles.reduce((best, id) => (model.layers[id].fills.length > model.layers[best].fills.length ? id : best)));
    selection.follow(panel, "tiles", tileOf);
    selection.listen(light);
    new ResizeObserver(fit).observe(panel);
  }

  return { start };
})();
