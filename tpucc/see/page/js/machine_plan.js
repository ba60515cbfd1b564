/** The floor plan: what each part does and holds, the ways between the parts, and what moves along them. */
const machinePlan = (() => {
  const panel = document.getElementById("view-machine");
  const plan = panel.querySelector(".plan");
  const ways = plan.querySelector(".ways");
  const parts = Object.fromEntries([...plan.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  const data = model.machine_view;
  const SUMS = new Set(["accumulators"]);
  const GAP = 2;
  const HEAD = 9; // pixels below the top of the boxes, where ways leave them sideways: beside their titles
  const [ROOM, MARGIN] = [16, 6]; // pixels that have no text there, at the right and at the left end of a box
  const [LETTER, ENDS] = [6.7, 15]; // pixels: of what moves
  const [TITLE, SHORT, FULL, EDGE] = [96, 52, 96, 6]; // pixels: a box's title, on the left; what moves, as a number and in all
  const tokens = [];
  const arrows = new Map();
  const told = new Map();
  let drawn = []; // the edges of the parts for which the ways are drawn

  /** Shows `children` in an element, unless they are what it shows: `key` says what that is. */
  function put(element, key, children) {
    if (told.get(element) === key) return;
    told.set(element, key);
    element.replaceChildren(...children());
  }

  /** The place across of a way up or down between `left` and `right`, beside the title; `aside` is -1 or 1 where there are both. */
  function across(left, right, aside) {
    const from = left + TITLE;
    const room = Math.max(0, right - from);
    const first = from + Math.max(room / 4, SHORT / 2);
    if (!aside) return from + room / 2;
    return aside < 0 ? first : Math.min(right - EDGE, Math.max(right - room / 4, first + SHORT));
  }

  const isBeside = (a, b) => a.right <= b.left || b.right <= a.left;

  /** A way between parts that stand beside each other; `aside` is -1, 0 or 1. */
  function sideways(a, b, frame, aside) {
    const y = Math.max(a.top, b.top) + HEAD + (aside + Math.abs(aside)) * 10 - frame.top;
    const [from, to] = a.right <= b.left ? [a.right, b.left] : [a.left, b.right];
    return { ends: [from - frame.left, y, to - frame.left, y], said: "brief" };
  }

  const widthOf = (text) => text.length * LETTER + ENDS;

  /** The words about what moves on a way, and the places [x, y] where it begins and ends: beside the titles of the boxes, or across the gap. */
  function course({ ends: [x1, y1, x2, y2], said }, here) {
    if (y1 !== y2) return { text: here[said], begin: [x1, y1 + Math.sign(y1 - y2) * GAP], end: [x2, y2 + Math.sign(y2 - y1) * GAP] };
    const gap = [Math.min(x1, x2) - ROOM, Math.max(x1, x2) + MARGIN];
    const text = widthOf(here.brief) > gap[1] - gap[0] ? here.short : here.brief;
    const half = Math.min(widthOf(text), gap[1] - gap[0]) / 2;
    const [left, right] = [[gap[0] + half, y1], [gap[1] - half, y1]];
    return x1 < x2 ? { text, begin: left, end: right } : { text, begin: right, end: left };
  }

  /** A way between parts of which one stands below the other. */
  function upright(a, b, frame, aside) {
    const [left, right] = [Math.max(a.left, b.left), Math.min(a.right, b.right)];
    const x = across(left, right, aside) - frame.left;
    const [from, to] = a.bottom <= b.top ? [a.bottom, b.top] : [a.top, b.bottom];
    const narrow = aside ? "short" : "brief";
    const said = right - left - TITLE >= (aside ? 2 : 1) * FULL ? "text" : narrow;
    return { ends: [x, from - frame.top, x, to - frame.top], said };
  }

  /**
   * The way from one part to another: its ends [x, y, x, y], across the gap between them, and which of the words about what moves have room
   * there. Both ways are side by side.
   */
  function way(from, to) {
    const [a, b, frame] = [parts[from], parts[to], plan].map((element) => element.getBoundingClientRect());
    const both = data.paths.flat().some(([other, back]) => other === to && back === from);
    const first = from < to ? 1 : -1;
    return (isBeside(a, b) ? sideways : upright)(a, b, frame, both ? first : 0);
  }

  /** The edges of all parts within the plan, in pixels. */
  function edges() {
    const frame = plan.getBoundingClientRect();
    return Object.values(parts).flatMap((part) => {
      const { left, right, top, bottom } = part.getBoundingClientRect();
      return [left - frame.left, right - frame.left, top - frame.top, bottom - frame.top];
    });
  }

  /** Whether parts have other places than when the ways were drawn. The border of a part that works is thicker: that is no other place. */
  const haveMoved = () => !edges().every((edge, index) => Math.abs(edge - drawn[index]) <= 1);

  /** Draws all ways anew: the parts have other places. */
  function laidOut() {
    drawn = edges();
    const pairs = new Map([["fifo matrix", ["fifo", "matrix"]], ...data.paths.flat().map((pair) => [pair.join(" "), pair])]);
    const found = [...pairs].map(([key, [from, to]]) => [key, way(from, to)]); // all at once: a line more has all laid out again for the next
    ways.replaceChildren(dom.svg("defs", {}, dom.svg("marker", { id: "way-end", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, dom.svg("path", { d: "M0 0 8 4 0 8z" }))));
    for (const [key, { ends, said }] of found) {
      const [x1, y1, x2, y2] = ends;
      const line = dom.svg("line", { x1, y1, x2, y2, "marker-end": "url(#way-end)" });
      arrows.set(key, { line, ends, said });
      ways.append(line);
    }
  }

  const tile = (number) => words.number(machineState.tiles[number]);

  /** A table of rows with their numbers. */
  function table(rows, how) {
    return dom.make("table", { class: how }, ...rows.map(({ row, values }) => dom.make("tr", { "data-row": row }, dom.make("th", { scope: "row" }, row === undefined ? "" : words.number(row)), ...values.map((value) => dom.make("td", {}, String(value).replace("-", "−"))))));
  }

  function operands(name, lines) {
    const most = lines.length > 1 ? 2 : 4;
    return lines.flatMap(({ index, verb, how, rows }) => [
      dom.make("p", { class: "soft", "data-instruction": index }, verb),
      table(rows.slice(0, most), `${how} ${SUMS.has(name) ? "sums" : "bytes"}`),
    ]);
  }

  function weights(title, number) {
    const corner = machineState.corners.get(number);
    const head = dom.make("p", { class: "soft" }, number < 0 ? `${title}: none` : `${title}: tile ${tile(number)}`);
    return [dom.make("div", { class: "weights" }, head, ...(corner ? [table(corner.map((values) => ({ values })), "bytes")] : []))];
  }

  /** The product that can be opened in the array: that of the layer that the matrix unit works on; -1 if there is none. */
  function product({ item, last }) {
    const layer = model.code.layer[item ?? last];
    return Object.keys(data.arrays?.parts ?? {}).map(Number).find((index) => model.code.layer[index] === layer) ?? -1;
  }

  const opener = (index) => (index < 0 ? [] : [dom.make("button", { class: "open", "aria-label": `open instruction ${words.number(index)} in the array`, title: `instruction ${words.number(index)}`, click: () => openArray(index) }, "open in the array")]);

  /** A corner of the array at work on a product, in a page of its own within this one. */
  function openArray(index) {
    const dark = document.documentElement.dataset.theme;
    const page = Object.entries(data.arrays.parts[index]).reduce((text, [name, value]) => text.replaceAll(`$${name}`, () => value), data.arrays.page);
    const frame = dom.make("iframe", { srcdoc: dark ? page.replace("<html", `<html data-theme="${dark}"`) : page, title: "the product in the array" });
    const close = dom.make("button", { click: () => dialog.close() }, "close");
    const dialog = document.body.appendChild(dom.make("dialog", { class: "array", "aria-label": "the product in the array", close: () => dialog.remove() }, close, frame));
    dialog.showModal();
  }

  const contents = {
    fifo: ({ fifo, coming, shifting }) => [
      `${fifo.join()} ${coming} ${shifting}`,
      () => [
        ...fifo.map((number) => dom.make("span", { class: `tile-here${number === shifting ? " shifting" : ""}` }, tile(number))),
        ...(coming >= 0 ? [dom.make("span", { class: "tile-here coming" }, tile(coming))] : []),
        ...Array.from({ length: Math.max(0, data.fifo - fifo.length - (coming >= 0 ? 1 : 0)) }, () => dom.make("span", { class: "tile-here free" }, "–")),
      ],
    ],
    matrix: ({ used, shadow, shifting, units }) => [
      `${used} ${shadow} ${shifting} ${product(units[machineState.MATRIX])}`,
      () => [
        ...weights("in use", used), ...weights(shifting >= 0 ? "shifting in" : "shadow", Math.max(shadow, shifting)), ...opener(product(units[machineState.MATRIX]))],
    ],
    memory: () => ["", () => []],
    activation: () => ["", () => []],
  };

  /** Which sums drain, how many rows of them, and until when; empty if none do. */
  const drained = (found) => (found ? `sums of instruction ${words.number(found.item)} (${words.counted(machineState.heights[found.item], "row")}) drain until cycle ${words.number(found.complete)}` : "");

  function rowsOf(name, { lines, owned, draining }) {
    const own = lines[name] ?? [];
    const key = own.map(({ index, verb }) => `${index} ${verb}`).join();
    const said = { buffer: `${words.number(owned)} of ${words.counted(model.machine.buffer_rows, "row")} in use`, accumulators: drained(draining) }[name];
    return [`${key} ${said}`, () => [...(said ? [dom.make("p", { class: "soft" }, said)] : []), ...operands(name, own)]];
  }

  /** What a unit does, in words. */
  function doing(unit, state) {
    const { does, item } = state.units[unit];
    if (does === "done") return Number(unit) === machineState.MATRIX && state.draining ? `has multiplied all rows; ${drained(state.draining)}` : "has done all its work";
    if (does === "waits") return machineState.waited(state.units[unit]);
    if (data.units[unit].box === "fifo") return `shifts tile ${tile(item)} into the shadow weights`;
    return `instruction ${words.number(item)}: ${model.said(item)}`;
  }

  /** Shows a state. */
  function show(state) {
    for (const [name, part] of Object.entries(parts)) {
      put(part.querySelector(".holds"), ...(contents[name]?.(state) ?? rowsOf(name, state)));
      const does = part.querySelector(".does");
      if (!does) continue;
      const { does: how } = state.units[does.dataset.unit];
      const said = doing(does.dataset.unit, state);
      put(does, said, () => [said]);
      part.dataset.does = how;
    }
    if (!arrows.size) laidOut();
    move(machineState.moving(state));
  }

  /** Puts a token on each way on which something moves. */
  function move(found) {
    const used = new Set(found.map(({ from, to }) => `${from} ${to}`));
    for (const [key, { line }] of arrows) line.classList.toggle("busy", used.has(key));
    while (tokens.length < found.length) tokens.push(plan.appendChild(dom.make("div", { class: "token", "aria-hidden": "true" })));
    while (tokens.length > found.length) tokens.pop().remove();
    tokens.forEach((token, place) => {
      const here = found[place];
      const { text, begin, end } = course(arrows.get(`${here.from} ${here.to}`), here);
      const [x, y] = begin.map((from, axis) => from + (end[axis] - from) * here.share);
      token.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
      dom.write(token, text);
      token.dataset.unit = here.unit;
      token.dataset.way = `${here.from} ${here.to}`;
      token.dataset.share = String(here.share);
    });
  }

  /** What each part is for, in a box beside its title too: a low window has no room for the sentence. */
  function explained() {
    for (const part of Object.values(parts)) {
      const title = part.querySelector("h3");
      title.replaceChildren(tips.word(title.textContent, part.querySelector(".about").textContent));
    }
  }

  function start(changed) {
    explained();
    const observer = new ResizeObserver(() => {
      if (!plan.clientWidth || !haveMoved()) return;
      laidOut();
      changed();
    });
    for (const element of [plan, ...Object.values(parts)]) observer.observe(element);
  }

  return { start, show, panel };
})();
