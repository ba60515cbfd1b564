/** The floor plan: what each part does, the ways between the parts, and what moves along them. `machine_contents` draws what the parts hold. */
const machinePlan = (() => {
  const panel = document.getElementById("view-machine");
  const plan = panel.querySelector(".plan");
  const [still, moving] = plan.querySelectorAll("canvas");
  const parts = Object.fromEntries([...plan.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  const data = model.machine_view;
  const [HEAD, BESIDE, END, PACKET] = [9, 11, 6, 7]; // pixels: of ways below the top of boxes, between two, of an arrow's end, of what moves
  const [TITLE, LETTER] = [96, 6.2]; // pixels, of a title on the left of a box, and of a letter
  const [NARROW, LOW] = [560, 756]; // pixels, of the plan's width and of the view's height
  const roomy = matchMedia("(min-width: 900px) and (min-height: 560px)"); // else the page scrolls, and the view is as high as what it has
  const labels = [];
  const told = new Map();
  let ways = new Map();
  let drawn = []; // the edges of the parts for which the ways are drawn
  let holds = {};
  let now = null;

  /** Shows `children` in an element, unless they are what it shows: `key` says what that is. */
  function put(element, key, children) {
    if (told.get(element) === key) return;
    told.set(element, key);
    element.replaceChildren(...children());
  }

  const within = (element, frame) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top };
  };

  /** The way from one part to another: its ends across the gap between them, and how wide words beside it may be; `aside` is -1 or 1 where there are both ways. */
  function way(a, b, aside) {
    if (a.right <= b.left || b.right <= a.left) {
      const y = Math.max(a.top, b.top) + HEAD + (aside > 0 ? 2 * BESIDE : 0);
      const [from, to] = a.right <= b.left ? [a.right, b.left] : [a.left, b.right];
      return { begin: [from, y], end: [to, y], room: Math.abs(to - from) };
    }
    const [left, right] = [Math.max(a.left, b.left), Math.min(a.right, b.right)];
    const room = aside ? (right - left) / 2 : right - Math.min(right - 70, left + TITLE);
    const x = right - room * (aside < 0 ? 2 : 1) + BESIDE;
    const [from, to] = a.bottom <= b.top ? [a.bottom, b.top] : [a.top, b.bottom];
    return { begin: [x, from], end: [x, to], room: room - BESIDE - 8 };
  }

  /** All ways, and the places in which contents are drawn, as the parts are laid out. */
  function laidOut() {
    drawn = edges();
    const frame = plan.getBoundingClientRect();
    const boxes = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, within(part, frame)]));
    holds = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, within(part.querySelector(".holds"), frame)]));
    const pairs = new Map([["fifo matrix", ["fifo", "matrix"]], ...data.paths.flat().map((pair) => [pair.join(" "), pair])]);
    const aside = ([from, to]) => (pairs.has(`${to} ${from}`) ? (from < to ? 1 : -1) : 0);
    ways = new Map([...pairs].map(([key, pair]) => [key, way(boxes[pair[0]], boxes[pair[1]], aside(pair))]));
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [still, moving]) [canvas.width, canvas.height] = [Math.round(frame.width * ratio), Math.round(frame.height * ratio)];
  }

  /** The edges of all parts within the plan, in pixels. */
  function edges() {
    const frame = plan.getBoundingClientRect();
    return [...Object.values(parts), ...plan.querySelectorAll(".holds")].flatMap((part) => Object.values(within(part, frame)));
  }

  /** Whether parts have other places than when the ways were drawn. */
  const haveMoved = () => !edges().every((edge, index) => Math.abs(edge - drawn[index]) <= 1);

  /** A canvas of the plan, cleared. */
  function cleared(canvas) {
    const context = canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    return context;
  }

  /** An arrow. */
  function arrow(context, { begin: [x1, y1], end: [x2, y2] }, busy) {
    context.strokeStyle = context.fillStyle = colours.of(busy ? "ink" : "rule");
    context.lineWidth = busy ? 2 : 1.4;
    const [dx, dy] = [Math.sign(x2 - x1), Math.sign(y2 - y1)];
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2 - dx * END, y2 - dy * END);
    context.stroke();
    context.beginPath();
    context.moveTo(x2, y2);
    for (const side of [-1, 1]) context.lineTo(x2 - dx * END + (dy * side * END) / 2, y2 - dy * END + (dx * side * END) / 2);
    context.fill();
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

  /** Which sums drain, how many rows of them, and until when; empty if none do. */
  const drained = (found) => (found ? `sums of instruction ${words.number(found.item)} (${words.counted(machineState.heights[found.item], "row")}) drain until cycle ${words.number(found.complete)}` : "");

  /** What a unit does: in a few words, and in a sentence. */
  function doing(unit, state) {
    const { does: work, item, stretch } = state.units[unit];
    if (work === "done") return Number(unit) === machineState.MATRIX && state.draining ? ["sums drain", `has multiplied all rows; ${drained(state.draining)}`] : ["done", "has done all its work"];
    if (work === "waits") return [stretch ? `waits for ${machineState.awaited(stretch)}` : "waits", machineState.waited(state.units[unit])];
    if (data.units[unit].box === "fifo") return [`shifts tile ${words.number(machineState.tiles[item])}`, `shifts tile ${words.number(machineState.tiles[item])} into the shadow weights`];
    const { name } = model.opcodes[model.code.opcode[item]];
    const rows = machineState.heights[item];
    return [`${name}${rows ? `, ${words.counted(rows, "row")}` : ""}`, `instruction ${words.number(item)}: ${model.said(item)}`];
  }

  /** Shows a state: of what changes between two events only what moves. */
  function show(state) {
    if (!ways.size) laidOut();
    if (state !== now) {
      now = state;
      for (const part of Object.values(parts)) does(part, state);
      for (const name of ["host", "fifo", "matrix", "accumulators", "buffer"]) machineContents.tell(name, parts[name].querySelector(".holds"), state, drained(state.draining));
      const index = product(state.units[machineState.MATRIX]);
      put(parts.matrix.querySelector(".opener"), String(index), () => opener(index));
      labelled(machineState.moving(state));
      tips.again();
      repaint();
    }
    const context = cleared(moving);
    for (const { unit, from, to, share } of machineState.moving(state)) packet(context, unit, ways.get(`${from} ${to}`), share);
  }

  /** The words and the look of a part that is a unit's. */
  function does(part, state) {
    const element = part.querySelector(".does");
    if (!element) return;
    const [brief, sentence] = doing(element.dataset.unit, state);
    dom.write(element, brief);
    if (element.ariaDescription !== sentence) element.ariaDescription = sentence;
    const { does: how } = state.units[element.dataset.unit];
    if (part.dataset.does !== how) part.dataset.does = how;
  }

  /** Draws what stays until the next event: the ways, and what the parts hold. */
  function repaint() {
    if (!now) return;
    const context = cleared(still);
    const busy = new Set(machineState.moving(now).map(({ from, to }) => `${from} ${to}`));
    for (const [key, found] of ways) arrow(context, found, busy.has(key));
    for (const [name, place] of Object.entries(holds)) machineContents.draw(context, name, place, now);
  }

  function packet(context, unit, { begin, end }, share) {
    const [x, y] = begin.map((from, axis) => from + Math.sign(end[axis] - from) * PACKET * (0.5 - share) + (end[axis] - from) * share);
    context.fillStyle = colours.of(`${hueOf(unit)}-line`);
    context.strokeStyle = colours.of("paper");
    context.beginPath();
    context.rect(x - PACKET / 2, y - PACKET / 2, PACKET, PACKET);
    context.fill();
    context.stroke();
  }

  /** The colour of a unit's part. */
  const hueOf = (unit) => /p-(\w+)/.exec(parts[data.units[unit].box].className)[1];

  /** Words beside the ways on which something moves: they stand still, in the gap. */
  function labelled(found) {
    while (labels.length < found.length) labels.push(plan.appendChild(dom.make("div", { class: "token", "aria-hidden": "true" })));
    while (labels.length > found.length) labels.pop().remove();
    labels.forEach((label, place) => {
      const { from, to, text, short } = found[place];
      const { begin: [x, y1], end: [x2, y2], room } = ways.get(`${from} ${to}`);
      dom.write(label, text.length * LETTER > room - 8 ? short : text);
      label.dataset.way = `${from} ${to}`;
      label.style.transform = y1 === y2 ? `translate(${(x + x2) / 2}px, ${y1 + END}px) translate(-50%, 0)` : `translate(${x + END}px, ${(y1 + y2) / 2}px) translate(0, -50%)`;
    });
  }

  /** What each part is for, in a box beside its title too: a low window has no room for the sentence. What a unit does and what a part holds, in whole. */
  function explained() {
    for (const part of Object.values(parts)) {
      const title = part.querySelector("h3");
      title.replaceChildren(tips.word(title.textContent, part.querySelector(".about").textContent));
      for (const element of part.querySelectorAll(".does, .holds[role=img]")) tips.live(element, () => element.ariaDescription || element.ariaLabel);
    }
  }

  /** Whether the view is narrow, or low: said by classes. Container queries have the whole view laid out anew with each word that changes in it. */
  function sized() {
    panel.classList.toggle("narrow", plan.clientWidth < NARROW);
    panel.classList.toggle("low", panel.clientHeight <= LOW && roomy.matches);
  }

  function start(changed) {
    explained();
    const observer = new ResizeObserver(() => {
      if (plan.clientWidth) sized();
      if (!plan.clientWidth || !haveMoved()) return;
      laidOut();
      now = null;
      changed();
    });
    for (const element of [panel, plan, ...Object.values(parts)]) observer.observe(element);
  }

  return { start, show, repaint, panel };
})();
