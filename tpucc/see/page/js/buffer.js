/** The unified buffer: who has which rows when, over the timeline's time, and over as many of its rows as are shown. */
const buffer = (() => {
  const [TOP, FOOT, FADED, FEWEST] = [8, 6, 0.25, 4];
  const [BELOW, ABOVE] = [13, 5]; // from a line to the baseline of its name
  const APART = 17; // pixels between the baselines of two names
  const AT_ONCE = "needed at once"; // the lower bound
  const ROOMY = { wide: 480, high: 72 }; // from this size on, the lines' names cover little of the map
  const canvas = document.getElementById("buffer");
  const { buffers, machine } = model;
  const ground = axis.ground();
  const highest = Math.max(1, machine.peak_rows, machine.lower_bound_rows);
  const shown = new axis.Stretch(FEWEST, highest, () => view.soon());
  let view = null;
  let lit = null;
  let seen = [];

  const inside = () => canvas.clientHeight - TOP - FOOT;
  const rowAt = (y) => shown.from + ((canvas.clientHeight - FOOT - y) / inside()) * shown.width;

  function draw(context, width, height, x) {
    const y = (row) => height - FOOT - ((row - shown.from) / shown.width) * inside();
    ground(context, [lit ? "faded" : "", shown.from, shown.to].join(), (below) => {
      seen = within(...axis.window());
      below.fillStyle = colours.of("band");
      below.fillRect(axis.LEFT, TOP, width - axis.LEFT - axis.RIGHT, inside());
      gauge(below, y);
      scale(below, width, y);
      axis.clipped(below, width, inside() + 4, () => blocks(below, seen, { alpha: lit ? FADED : 1, x, y, width }), TOP - 2);
      told(y);
    });
    axis.clipped(context, width, inside() + 4, () => {
      if (lit) blocks(context, seen.filter((index) => lit.buffers.has(index)), { alpha: 1, x, y, width });
      const roomy = width - axis.LEFT - axis.RIGHT >= ROOMY.wide && inside() >= ROOMY.high;
      for (const [text, at] of limits(y).filter(() => roomy)) haloed(context, text, ["alarm", "paper"], width - axis.RIGHT - 4, beside(at), "end");
    }, TOP - 2);
  }

  /** The buffers of which something is in the window. */
  const within = (from, to) => buffers.flatMap((stay, index) => (stay.to >= from && stay.from <= to && stay.row < shown.to && stay.row + stay.rows > shown.from ? [index] : []));

  /** The baseline of a line's name: below the line, or above it where it lies at the foot of the map. */
  function beside(line) {
    const foot = canvas.clientHeight - FOOT;
    return line <= foot && line + BELOW > foot ? line - ABOVE : line + BELOW;
  }

  /** These buffers, over those that are lit or over all the lines of the limits, and their names over these. */
  function blocks(context, own, { alpha, x, y, width }) {
    context.globalAlpha = alpha;
    context.lineWidth = lit && alpha === 1 ? 2 : 1;
    const places = own.map((index) => place(buffers[index], x, y));
    places.forEach((box, at) => area(context, ...box, buffers[own[at]].kind));
    context.globalAlpha = 1;
    context.save();
    if (lit && alpha === 1) onlyIn(context, places);
    for (const [at, dashes] of edges(y)) limit(context, width, at, dashes);
    context.restore();
    context.globalAlpha = alpha;
    for (const index of own) label(context, buffers[index], x, y, width);
    context.globalAlpha = 1;
  }

  /** Left, top, width and height of a buffer's block. */
  function place({ row, rows, from, to }, x, y) {
    const [left, right, top, bottom] = [x(from), x(to), y(row + rows), y(row)];
    return [left, top, Math.max(1, right - left), Math.max(1, bottom - top)];
  }

  function onlyIn(context, places) {
    context.beginPath();
    for (const box of places) context.rect(...box);
    context.clip();
  }

  /** A buffer's name, if its block has room for it. */
  function label(context, { plain: name, kind, row, rows, from, to }, x, y, width) {
    const [top, bottom, left] = [y(row + rows), y(row), Math.max(x(from), axis.LEFT)];
    const visible = Math.min(x(to), width) - left;
    if (bottom - top < 14 || visible <= 40 || context.measureText(name).width >= visible - 8) return;
    haloed(context, name, ["ink", kind], left + 4, (Math.max(top, TOP) + Math.min(bottom, canvas.clientHeight)) / 2 + 4);
  }

  /** A text that lines behind it don't run through. */
  function haloed(context, text, [ink, behind], x, y, align = "start") {
    context.textAlign = align;
    context.strokeStyle = colours.of(behind);
    context.lineWidth = 3;
    context.strokeText(text, x, y);
    context.fillStyle = colours.of(ink);
    context.fillText(text, x, y);
    context.textAlign = "start";
  }

  /** An outlined rectangle; one without room for an outline has its strong colour all over. */
  function area(context, left, top, wide, tall, kind) {
    const outlined = wide > 3 && tall > 3;
    context.fillStyle = colours.of(outlined ? kind : `${kind}-line`);
    context.strokeStyle = colours.of(`${kind}-line`);
    context.fillRect(left, top, wide, tall);
    if (outlined) context.strokeRect(left + 0.5, top + 0.5, wide - 1, tall - 1);
  }

  /** The lines of the peak and of the lower bound: where each is, and its dashes. */
  function edges(y) {
    const { peak_rows: peak, lower_bound_rows: bound } = machine;
    return [[y(peak), []], ...(bound && bound !== peak ? [[y(bound), [6, 4]]] : [])];
  }

  /** Their names, each with the height of the line that it stands beside. */
  function limits(y) {
    const [peak, bound] = [y(machine.peak_rows), y(machine.lower_bound_rows)];
    if (peak === bound) return [[`peak = ${AT_ONCE}`, peak]];
    if (!machine.lower_bound_rows) return [["peak", peak]];
    return beside(bound) - beside(peak) >= APART ? [["peak", peak], [AT_ONCE, bound]] : [[`peak, ${AT_ONCE} (dashed)`, bound]];
  }

  function limit(context, width, y, dashes) {
    context.strokeStyle = colours.of("alarm");
    context.lineWidth = 1.5;
    context.setLineDash(dashes);
    context.beginPath();
    context.moveTo(axis.LEFT, y);
    context.lineTo(width, y);
    context.stroke();
    context.setLineDash([]);
  }

  /** Round row numbers with a grid. */
  function scale(context, width, y) {
    for (const row of shown.ticks(Math.max(1, Math.floor(inside() / 24)))) {
      context.fillStyle = colours.of("grid");
      context.fillRect(axis.LEFT - 4, Math.round(y(row)), width - axis.LEFT - axis.RIGHT + 4, 1);
      haloed(context, words.number(row), ["soft", "paper"], axis.LEFT - 8, y(row) + 4, "end");
    }
  }

  /** At the left the whole buffer, and how much of it the peak takes; lines lead from the rows that the map shows to its corners. */
  function gauge(context, y) {
    const whole = machine.buffer_rows;
    const [left, wide, tall] = [axis.LEFT / 8, 8, inside()];
    const at = (row) => TOP + tall * (1 - row / whole);
    context.fillStyle = colours.of("soft");
    context.fillRect(left, at(machine.peak_rows), wide, TOP + tall - at(machine.peak_rows));
    context.strokeStyle = colours.of("soft");
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, TOP + 0.5, wide - 1, tall - 1);
    context.strokeStyle = colours.of("rule");
    context.beginPath();
    for (const row of [shown.from, shown.to]) {
      context.moveTo(left + wide + 2, at(row));
      context.lineTo(axis.LEFT - 52, y(row)); // the numbers of rows stand behind that
    }
    context.stroke();
  }

  /** Which rows are shown, and how many buffers are drawn higher than they are. */
  function told(y) {
    const thin = seen.filter((index) => y(0) - y(buffers[index].rows) < 1).length;
    const rows = shown.width < highest ? `rows ${words.number(shown.from)}–${words.number(shown.to)}` : "";
    const lines = thin ? `${words.counted(thin, "buffer")} lower than a pixel, drawn as lines` : "";
    document.getElementById("rows").textContent = [rows, lines].filter(Boolean).join(" · ");
  }

  /** The line of a limit as the map draws it, beside the limit's name. */
  const drawnAs = (dashed) => dom.make("span", { class: dashed ? "limit dashed" : "limit", "aria-hidden": "true" });

  /** How full the buffer gets, in words, and what is needed at once, each with its line: a small map doesn't name them. */
  function title() {
    const { peak_rows: peak, lower_bound_rows: bound, buffer_rows: whole } = machine;
    const meanings = model.terms;
    const named = tips.word(AT_ONCE, `the lower bound, ${meanings["lower bound"]}`);
    const most = tips.word("peak", meanings.peak);
    const least = peak === bound || !bound ? [] : [", ", drawnAs(true), named, ` ${words.number(bound)}`];
    const rows = `: ${words.number(peak)} of ${words.counted(whole, "row")}`;
    const said = [`: ${words.percent(peak, whole)} full at the `, drawnAs(false), most, rows, ...(peak === bound ? [", all ", named] : least)];
    return [tips.word("unified buffer", meanings["unified buffer"]), ...said, " · ", tips.word("colours", meanings.colours)];
  }

  function under(event) {
    const [row, time, slack] = [rowAt(event.offsetY), view.timeAt(event.offsetX), view.slack(1)];
    const holds = (stay) => row >= stay.row && row < stay.row + stay.rows && time >= stay.from - slack && time <= stay.to + slack;
    const id = event.offsetX < axis.LEFT ? -1 : buffers.findLastIndex(holds);
    return id < 0 ? null : { kind: "buffer", id };
  }

  function about(event) {
    const found = under(event);
    if (!found) return "";
    const { name, plain, row, rows, from, to } = buffers[found.id];
    return `${plain === name ? name : `${plain}, ${name} in the program`}\nrows ${words.number(row)}–${words.number(row + rows - 1)} · ${words.span(from, to)}`;
  }

  function light(chosen, found) {
    lit = found?.idle ? null : found;
    view.soon();
  }

  /** With Alt, and on the axis, the wheel zooms the rows. */
  function wheel(event) {
    const rows = event.altKey || event.offsetX < axis.LEFT;
    if (rows) shown.zoom(-Math.sign(event.deltaY), rowAt(event.offsetY));
    return rows;
  }

  function drag([from, to], dy) {
    const moved = (dy / inside()) * (to - from);
    shown.show(from + moved, to + moved);
  }

  function press(event) {
    const steps = { ArrowUp: 0.2, ArrowDown: -0.2 }[event.key];
    if (!steps) return;
    event.preventDefault();
    event.stopPropagation();
    shown.pan(steps);
  }

  function start() {
    view = axis.attach(canvas, draw, { wheel, drag, all: () => shown.all(), begin: () => [shown.from, shown.to] });
    selection.follow(canvas, "buffer", under, (wanted) => selection.hold(wanted, "buffer"));
    selection.listen(light);
    tips.follow(canvas, about);
    canvas.addEventListener("keydown", press);
    document.getElementById("peak").replaceChildren(...title());
    const zooms = { in: () => shown.zoom(2), out: () => shown.zoom(-2), all: () => shown.all() };
    for (const button of document.querySelectorAll("[data-rows]")) button.addEventListener("click", zooms[button.dataset.rows]);
  }

  return { start, paint: () => view.paint() };
})();
