/** The weights of a layer as their tiles: how full each is, and when it has its turn. */
const tiles = (() => {
  const MOST = 4096;
  const [LARGEST, SMALLEST, SIDE] = [64, 10, 420];
  const SVG = "http://www.w3.org/2000/svg";
  const panel = document.getElementById("view-tiles");
  const withTiles = model.layers.flatMap((layer, id) => (layer.fills.length ? [id] : []));
  let shown = -1;

  function make(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent?.append(element);
    return element;
  }

  /** For each place of a layer's grid the turns of its tile. */
  function turnsOf(id) {
    const turns = model.layers[id].fills.map(() => []);
    for (const fetch of model.fetches) if (fetch.layer === id && fetch.place >= 0) turns[fetch.place].push(fetch.turn);
    return turns;
  }

  function grid(id) {
    const { fills, weights } = model.layers[id];
    const across = Math.ceil(weights[1] / model.machine.mxu);
    const down = Math.ceil(fills.length / across);
    const side = Math.min(LARGEST, Math.max(SMALLEST, SIDE / Math.max(across, down)));
    const svg = make("svg", { width: across * side + 2, height: down * side + 2, role: "img", "aria-label": `tiles of ${model.layers[id].name}` });
    const turns = turnsOf(id);
    fills.forEach((fill, place) => svg.append(cell(id, place, side, across, fill, turns[place])));
    return svg;
  }

  function cell(id, place, side, across, [, rows, columns], turns) {
    const [x, y, inner] = [(place % across) * side + 1, Math.floor(place / across) * side + 1, side - 2];
    const { mxu } = model.machine;
    const group = make("g", { class: "tile", "data-place": place, "data-layer": id });
    make("rect", { x, y, width: inner, height: inner, class: "rest" }, group);
    make("rect", { x, y, width: Math.max(1.5, (inner * columns) / mxu), height: Math.max(1.5, (inner * rows) / mxu), class: "k-weights" }, group);
    const number = turns.length ? words.number(turns[0]) : "";
    if (inner >= 18 && number.length * 7 < inner) {
      make("text", { x: x + inner / 2, y: y + inner / 2 + 4, "text-anchor": "middle", class: "f-ink" }, group).textContent = number;
    }
    make("title", {}, group).textContent = `${words.title({ kind: "tile", id, place })} · ${rows} × ${columns} of ${mxu} × ${mxu} used`;
    return group;
  }

  const picker = document.createElement("select");

  function fillPicker() {
    picker.setAttribute("aria-label", "layer");
    picker.append(...withTiles.map((layer) => new Option(model.layers[layer].name, layer)));
    picker.addEventListener("change", () => selection.hold({ kind: "layer", id: Number(picker.value) }, "tiles"));
  }

  function head(id) {
    const { fills, weights, choice } = model.layers[id];
    const used = fills.reduce((sum, [, rows, columns]) => sum + rows * columns, 0);
    const line = document.createElement("p");
    const full = words.percent(used, fills.length * model.machine.mxu ** 2);
    const size = `${words.number(weights[0])} inputs × ${words.number(weights[1])} outputs`;
    picker.value = id;
    line.append(picker, ` ${size}: ${words.counted(fills.length, "tile")}, ${full} full${choice ? `; ${choice}` : ""}.`);
    return line;
  }

  function draw(id) {
    shown = id;
    const note = document.createElement("p");
    const few = model.layers[id].fills.length <= MOST;
    note.textContent = few ? "The filled part of a tile is used, the rest is padding; the number is its turn in the layer." : "Too many tiles to draw.";
    panel.replaceChildren(head(id), note, ...(few ? [grid(id)] : []));
  }

  /** The first layer with tiles among what is lit. */
  const layerOf = (chosen, lit) => (chosen.kind === "tile" ? chosen.id : [...lit.layers].find((id) => withTiles.includes(id)));

  function light(chosen, lit) {
    const layer = selection.held() ? layerOf(chosen, lit) : undefined;
    if (layer !== undefined && layer !== shown) draw(layer);
    const own = lit ? [...lit.fetches].map((id) => model.fetches[id]).filter((fetch) => fetch.layer === shown) : [];
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
      panel.textContent = "No layer has weights, so there are no tiles.";
      return;
    }
    fillPicker();
    draw(withTiles.reduce((best, id) => (model.layers[id].fills.length > model.layers[best].fills.length ? id : best)));
    panel.addEventListener("mouseover", (event) => selection.point(tileOf(event), "tiles"));
    panel.addEventListener("mouseleave", () => selection.point(null, "tiles"));
    panel.addEventListener("click", (event) => {
      if (tileOf(event)) selection.hold(tileOf(event), "tiles");
    });
    selection.listen(light);
  }

  return { start };
})();
