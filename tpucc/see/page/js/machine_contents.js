/** What the parts of the machine hold, as pictures: rows of a memory as a strip with their values below, tiles, sums as bars around zero. */
const machineContents = (() => {
  const data = model.machine_view;
  const { machine, buffers } = model;
  const [STRIP, LINE, GAP, SQUARE] = [9, 13, 12, 64]; // pixels
  const [SIDE, LANES] = [4, 8]; // rows and columns of a tile's corner; lanes of a row
  const [LEAST, MOST] = [9, 16]; // pixels of a cell
  const FONT = "11px";
  const SIZES = { ...data.sizes, buffer: Math.max(1, machine.peak_rows) };
  const HUES = { host: "host-line", memory: "weights-line", matrix: "weights-line", accumulators: "matrix-line", buffer: "vector-line" };
  const SIGNED = /-/g;
  const HIGH = data.wide ? 2 ** 15 : 2 ** 7;
  const ACTIVATION = Object.keys(data.units).find((unit) => data.units[unit].box === "activation");

  const minus = (value) => String(value).replace(SIGNED, "−");
  const rowsOf = ({ low, high }) => (high - low > 1 ? `rows ${words.number(low)} to ${words.number(high - 1)}` : `row ${words.number(low)}`);

  /** What a tile is, and how much of it holds weights: {tile, rows, columns}; null where there is none. */
  function tileOf(number) {
    if (number < 0 || !model.fetches[number]) return null;
    const { layer, place } = model.fetches[number];
    const [, rows, columns] = model.layers[layer]?.fills[place] ?? [0, machine.mxu, machine.mxu];
    return { tile: machineState.tiles[number], rows, columns, corner: machineState.corners.get(number) };
  }

  /** The tiles of the matrix unit: [title, tile] of that in use and of that in the shadow weights. */
  const tilesOf = ({ used, shadow, shifting }) => [["in use", tileOf(used)], [shifting >= 0 ? "shifting in" : "shadow", tileOf(Math.max(shadow, shifting))]];

  const saidRows = (rows) => rows.map(({ row, values }) => `${words.number(row)}: ${values.map(minus).join(" ")}`);

  /** The numbers of a part, line by line. */
  function lines(name, state, drains) {
    if (name === "matrix") return tilesOf(state).flatMap(([title, found]) => (found ? [`${title}: tile ${words.number(found.tile)}, ${found.rows} × ${found.columns} of ${machine.mxu} × ${machine.mxu}`, ...(found.corner ?? []).map((values) => values.map(minus).join(" "))] : [`${title}: none`]));
    const own = (state.lines[name] ?? []).flatMap(({ index, verb, rows, reach }) => [`instruction ${words.number(index)}: ${verb} ${rowsOf(reach)}`, ...(rows.length ? saidRows(rows) : ["its values are not recorded"])]);
    const first = { buffer: `${words.number(state.owned)} of ${words.counted(machine.buffer_rows, "row")} in use`, accumulators: drains }[name];
    return [...(first ? [first] : []), ...own];
  }

  /** Says what a part holds: to who reads the page by ear, and in a box where the pointer or the focus is. */
  function tell(name, element, state, drains) {
    if (name === "fifo") {
      fifo(element, state);
      return;
    }
    const said = lines(name, state, drains).join("\n") || "nothing";
    if (element.ariaLabel !== said) element.ariaLabel = said;
  }

  let places = "";

  /** The places of the FIFO: tiles that wait, one on its way, free ones. */
  function fifo(element, { fifo: waiting, coming, shifting }) {
    const key = `${waiting.join()} ${coming} ${shifting}`;
    if (key === places) return;
    places = key;
    const tile = (number) => words.number(machineState.tiles[number]);
    element.replaceChildren(
      ...waiting.map((number) => dom.make("span", { class: `tile-here${number === shifting ? " shifting" : ""}` }, tile(number))),
      ...(coming >= 0 ? [dom.make("span", { class: "tile-here coming" }, tile(coming))] : []),
      ...Array.from({ length: Math.max(0, data.fifo - waiting.length - (coming >= 0 ? 1 : 0)) }, () => dom.make("span", { class: "tile-here free" }, "–")),
    );
  }

  /** A text, cut off where it would pass `right`. */
  function text(context, words, x, y, right, ink = "soft") {
    context.fillStyle = colours.of(ink);
    let shown = words;
    while (shown && context.measureText(shown).width > right - x) shown = shown.slice(0, -2);
    context.fillText(shown === words || !shown ? shown : `${shown.trimEnd()}…`, x, y);
  }

  /** A cell with so much of a colour, from -1 to 1: less than nothing is ink. */
  function cell(context, hue, share, [x, y, width, height]) {
    context.fillStyle = colours.of("grid");
    context.globalAlpha = 0.5;
    context.fillRect(x, y, width, height);
    context.fillStyle = colours.of(share < 0 ? "ink" : hue);
    context.globalAlpha = Math.min(1, Math.abs(share));
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
  }

  /** The rows of a memory as a strip: those that have an owner, and those that are read or written. */
  function strip(context, name, x, y, width, state) {
    const at = (row) => x + (Math.min(row, SIZES[name]) / SIZES[name]) * width;
    context.fillStyle = colours.of("band");
    context.fillRect(x, y, width, STRIP);
    if (name === "buffer") {
      for (const one of buffers) {
        if (one.from > state.time || one.to <= state.time) continue;
        context.fillStyle = colours.of(one.kind);
        context.fillRect(at(one.row), y, Math.max(1, at(one.row + one.rows) - at(one.row)), STRIP);
      }
    }
    context.strokeStyle = colours.of("rule");
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, STRIP - 1);
    for (const { how, reach } of state.lines[name] ?? []) {
      const [left, wide] = [at(reach.low), Math.max(3, at(reach.high) - at(reach.low))];
      context.fillStyle = context.strokeStyle = colours.of(how === "read" ? "ink" : HUES[name]);
      if (how === "read") context.fillRect(left, y + 1, wide, STRIP / 2 - 1);
      else if (how === "coming") context.strokeRect(left + 0.5, y + STRIP / 2 + 0.5, wide - 1, STRIP / 2 - 1.5);
      else context.fillRect(left, y + STRIP / 2, wide, STRIP / 2 - 1);
    }
  }

  /** The side of a cell where so many beside each other have so much room. */
  const sized = (room, count) => Math.max(LEAST, Math.min(MOST, Math.floor(room / count)));

  /** Values as cells, in rows. */
  function heat(context, name, rows, { x, y, width, height, how }) {
    const wide = sized(width, LANES);
    const high = Math.max(4, Math.min(wide, (height - 2) / rows.length));
    rows.forEach(({ values }, line) => values.forEach((value, lane) => cell(context, HUES[name], value / HIGH, [x + lane * wide, y + line * high, wide - 1, high - 1])));
    if (how === "coming") dashed(context, x - 1, y - 1, rows[0].values.length * wide + 1, rows.length * high + 1);
  }

  function dashed(context, x, y, width, height) {
    context.strokeStyle = colours.of("soft");
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
    context.setLineDash([]);
  }

  /** Sums as bars around zero, a group for each row; all of a part by one scale. */
  function bars(context, rows, { x, y, width, height, how }, most) {
    const zero = y + height / 2;
    const wide = Math.max(5, Math.min(9, Math.floor((width / rows.length - GAP) / LANES)));
    const across = LANES * wide + GAP;
    rows.forEach(({ values }, line) => {
      const left = x + line * across;
      if (left + across - GAP > x + width) return;
      context.fillStyle = colours.of("rule");
      context.fillRect(left, zero, values.length * wide, 1);
      values.forEach((value, lane) => {
        const tall = (value / most) * (height / 2 - 1);
        context.fillStyle = context.strokeStyle = colours.of(HUES.accumulators);
        context.globalAlpha = how === "read" ? 0.3 : 1;
        if (how === "coming") context.strokeRect(left + lane * wide + 0.5, zero - Math.max(0, tall), wide - 2, Math.max(1, Math.abs(tall)));
        else context.fillRect(left + lane * wide, zero - Math.max(0, tall), wide - 1, Math.max(1, Math.abs(tall)));
        context.globalAlpha = 1;
      });
    });
  }

  /** A memory: a line about it, the strip of its rows, and below it what is read and written, each with its first values. */
  function memory(context, name, { left, right, top, bottom }, state) {
    const own = state.lines[name] ?? [];
    let y = top;
    if (name === "buffer" && bottom - top > 64) {
      text(context, `${words.number(state.owned)} of ${words.number(machine.buffer_rows)} rows in use`, left, y + 10, right);
      y += LINE + 2;
    }
    strip(context, name, left, y, right - left, state);
    y += STRIP + 2;
    const most = Math.max(1, ...own.flatMap(({ rows }) => rows.flatMap(({ values }) => values.map(Math.abs))));
    if (name === "accumulators") {
      const [first, second] = own;
      const adds = second && first.index === second.index;
      if (first) text(context, adds ? `${first.verb.replace("reads", "adds")}; pale: before` : first.verb, left, y + 10, right);
      for (const { rows, how } of adds ? own : own.slice(0, 1)) bars(context, rows, { x: left, y: y + LINE, width: right - left, height: bottom - y - LINE, how }, most);
      return;
    }
    const columns = Math.max(1, Math.min(own.length, Math.floor((right - left) / (LANES * LEAST + GAP))));
    const across = (right - left) / columns;
    own.toSorted((a, b) => Math.sign(b.rows.length) - Math.sign(a.rows.length)).slice(0, columns).forEach(({ verb, how, rows, short }, place) => {
      const [x, end] = [left + place * across, left + (place + 1) * across - 6];
      text(context, context.measureText(verb).width > end - x ? short : verb, x, y + 10, end);
      if (rows.length) heat(context, name, rows, { x, y: y + LINE + 1, width: end - x, height: bottom - y - LINE, how });
      else text(context, "no values", x, y + LINE + 11, end);
    });
  }

  /** What the activation unit makes of the first rows: what it reads, and what it writes. */
  function activation(context, { left, right, top, bottom }, { units, lines: all }) {
    const { does, item } = units[ACTIVATION];
    if (does !== "works" || bottom - top < 2 * LINE) return;
    const own = Object.values(all).flat().filter(({ index, rows }) => index === item && rows.length);
    const read = own.find(({ how }) => how === "read");
    const written = own.find(({ how }) => how === "coming");
    if (!read || !written) return;
    const half = (right - left) / 2;
    const place = { x: left, y: top + LINE, width: half - GAP, height: bottom - top - LINE, how: "written" };
    const most = Math.max(1, ...read.rows.flatMap(({ values }) => values.map(Math.abs)));
    text(context, "in", left, top + 10, left + half);
    text(context, "out", left + half, top + 10, right);
    if (read.reach.box === "accumulators") bars(context, read.rows, place, most);
    else heat(context, "buffer", read.rows, place);
    heat(context, "buffer", written.rows, { ...place, x: left + half });
  }

  /** Tiles: each as a square with the part of it that holds weights, and a corner of these beside it. */
  function matrix(context, { left, right, top, bottom }, state) {
    const half = (right - left) / 2 - 8;
    const side = Math.min(SQUARE, bottom - top - LINE - 2, half / 2);
    tilesOf(state).forEach(([title, found], place) => {
      const [x, y] = [left + (place * (right - left)) / 2, top + LINE];
      text(context, found ? `${title}: tile ${words.number(found.tile)}` : `${title}: none`, x, top + 10, x + half + 4);
      context.strokeStyle = colours.of("weights-line");
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      if (!found) return;
      context.fillStyle = colours.of("weights-line");
      context.fillRect(x, y, Math.max(3, (found.columns / machine.mxu) * side), Math.max(3, (found.rows / machine.mxu) * side));
      const [start, size] = [x + side + 10, Math.min(MOST, side / SIDE, (half - side - 10) / SIDE)];
      if (!found.corner || size < 4) return;
      context.strokeStyle = colours.of("rule");
      context.beginPath();
      for (const [dy, to] of [[0, 0], [3, SIDE * size - 1]]) {
        context.moveTo(x + 3, y + dy);
        context.lineTo(start - 1, y + to);
      }
      context.stroke();
      found.corner.forEach((values, line) => values.forEach((value, lane) => cell(context, HUES.matrix, value / HIGH, [start + lane * size, y + line * size, size - 1, size - 1])));
    });
  }

  /** The tiles of weight memory as a strip, those that the host writes behind the weights, with the one that is fetched. */
  function tiles(context, { left, right, top, bottom }, { coming }) {
    const [count, width] = [SIZES.memory, right - left];
    if (bottom - top < STRIP) return;
    context.fillStyle = colours.of("weights");
    context.fillRect(left, top, width, STRIP);
    context.strokeStyle = colours.of("weights-line");
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, width - 1, STRIP - 1);
    if (coming < 0) return;
    context.fillStyle = colours.of("weights-line");
    context.fillRect(left + (machineState.tiles[coming] / count) * width, top, Math.max(3, width / count), STRIP);
  }

  const painters = { matrix, memory: tiles, activation };

  function draw(context, name, place, state) {
    if (name === "fifo") return;
    context.font = `${FONT} ${getComputedStyle(document.body).getPropertyValue("--sans") || "sans-serif"}`;
    if (painters[name]) painters[name](context, place, state);
    else memory(context, name, place, state);
  }

  return { draw, tell };
})();
