/** The timeline: the layers, a lane for each unit, what the matrix unit waits for hatched, cycles and time below. */
const timeline = (() => {
  const [GAP, SCALE, LEAST, MOST] = [4, 32, 14, 60];
  const [FADED, ROOM, SHADED, NAMED] = [0.22, 4, 3, 30];
  const SHADE = 0.2; // of ink, over every second bar: less would be too light for white names, and too dark for black ones
  const COLUMNS = "Where bars would be too narrow to be told apart, a column of pixels stands for all that its cycles have: each colour is as high as its share of them. Zoom in for the bars.";
  const canvas = document.getElementById("timeline");
  const MATRIX = 3;
  const top = band.height + 2;
  const groups = (found) => found.units.map((lane, index) => (index === MATRIX ? [lane, ...found.stalls] : [lane]));
  const own = groups(lanes);
  const heights = new WeakMap();
  const ground = axis.ground();
  let lit = null;
  let chosenLit = null;
  let view = null;
  let labels = [];
  let signs = [];
  let lane = 18;
  let dense = [];

  const topOf = (index) => top + index * (lane + GAP);
  const bottom = () => topOf(own.length);
  const nameOf = (found) => (found.root === undefined ? model.rows[0].name : model.waits.roots[found.root].meaning);

  /** Whether a lane has more than one interval for so many pixels: its bars could not be told apart. */
  function isDense(group, x) {
    const [from, to] = axis.window();
    const count = group.reduce((sum, found) => sum + lanes.crowd(found, from, to), 0);
    return count * ROOM > x(to) - x(from);
  }

  function draw(context, width, height, x) {
    lane = Math.min(MOST, Math.max(LEAST, Math.floor((height - top - SCALE) / own.length) - GAP));
    dense = own.map((group) => isDense(group, x));
    ground(context, isFaded() ? "faded" : "", (below) => {
      everything(below, width, height, x);
      told(x);
    });
    if (why.isOn()) axis.clipped(context, width, height, () => why.draw(context, x, topOf, lane));
    else if (lit) everythingLit(context, width, height, x);
  }

  const isFaded = () => lit || why.isOn();

  function everythingLit(context, width, height, x) {
    axis.clipped(context, width, height, () => {
      band.light(context, width, chosenLit);
      groups(lit).forEach((group, index) => row(context, group, index, x));
      named(context, groups(lit), x, width);
    });
  }

  /** All that there is, faded if something is lit, which is drawn over it. */
  function everything(context, width, height, x) {
    own.forEach((_, index) => {
      context.fillStyle = colours.of("band");
      context.fillRect(axis.LEFT, topOf(index), width - axis.LEFT - axis.RIGHT, lane);
    });
    axis.clipped(context, width, height, () => {
      band.draw(context, width, x);
      context.globalAlpha = isFaded() ? FADED : 1;
      own.forEach((group, index) => row(context, group, index, x));
      context.globalAlpha = 1;
      if (!isFaded()) named(context, own, x, width);
    });
    scale(context, width, x);
    canvas.parentElement.style.setProperty("--lanes-end", `${bottom()}px`);
  }

  /** The names in the bars of lanes that have bars. */
  const named = (context, drawn, x, width) => drawn.forEach(([unit], index) => dense[index] || written(context, unit, topOf(index), x, width));

  /**
   * Single bars where they can be told apart, else for each pixel the shares of time, one on the other. Work comes last, over the waits: a
   * pixel that both share then has as much of its colour as is its.
   */
  function row(context, [unit, ...waits], index, x) {
    const [from, to] = axis.window();
    const work = dense[index] ? heightsOf(unit, Math.ceil(x(to) - x(from))) : null;
    const below = work && [...work];
    for (const found of [...waits, unit]) {
      if (!found.starts.length) continue;
      context.fillStyle = found === unit ? colours.of(`${unit.kind}-line`) : colours.hatch(context, model.waits.roots[found.root]);
      if (!work) bars(context, found, topOf(index), x);
      else if (found === unit) columns(context, work, work.map(() => 0), topOf(index));
      else columns(context, heightsOf(found, work.length), below, topOf(index));
    }
  }

  /** Bars as wide as their time is long, however little that is. Those without a gap are one, in which every second is a shade darker. */
  function bars(context, found, y, x) {
    const [first, last] = lanes.meeting(found, ...axis.window());
    let begin = first;
    for (let index = first; index < last; index++) {
      if (index + 1 < last && found.starts[index + 1] === found.ends[index]) continue;
      context.fillRect(x(found.starts[begin]), y, x(found.ends[index]) - x(found.starts[begin]), lane);
      begin = index + 1;
    }
    for (let index = first + 1 - (first % 2); index < last && found.root === undefined; index += 2) {
      const [left, right] = [x(found.starts[index]), x(found.ends[index])];
      if (right - left > SHADED) shade(context, left, y, right - left);
    }
  }

  function shade(context, left, y, wide) {
    const [fill, alpha] = [context.fillStyle, context.globalAlpha];
    context.fillStyle = colours.of("ink");
    context.globalAlpha = alpha * SHADE;
    context.fillRect(left, y, wide, lane);
    context.fillStyle = fill;
    context.globalAlpha = alpha;
  }

  /** For each column of pixels the share of its cycles in which a unit works, or waits for one root, as a height: kept for the next frame. */
  function heightsOf(found, count) {
    const size = [count, lane, ...axis.window()].join(" ");
    if (heights.get(found)?.size !== size) heights.set(found, { size, values: computed(found, count) });
    return heights.get(found).values;
  }

  function computed(found, count) {
    const values = new Float64Array(count);
    if (!found.starts.length) return values;
    const [from, to] = axis.window();
    const columnOf = (time) => Math.min(count, Math.max(0, ((time - from) / (to - from)) * count));
    const last = Math.ceil(columnOf(found.ends.at(-1)));
    for (let place = Math.floor(columnOf(found.starts[0])); place < last; place++) values[place] = lane * lanes.share(found, ...column(place, count));
    return values;
  }

  /** Columns that stand on what is `below` them, which grows by them. */
  function columns(context, tall, below, y) {
    tall.forEach((high, place) => {
      if (high) context.fillRect(axis.LEFT + place, y + lane - below[place] - high, 1, high);
      below[place] += high;
    });
  }

  /** The cycles of a column of pixels. */
  function column(place, count) {
    const [from, to] = axis.window();
    const cycles = (to - from) / count;
    return [from + place * cycles, Math.min(to, from + (place + 1) * cycles)];
  }

  /** The names of layers, and of the values of transfers, in the bars that have room. */
  function written(context, unit, y, x, width) {
    const [first, last] = lanes.meeting(unit, ...axis.window());
    const inks = [0, SHADE].map((share) => colours.over(`${unit.kind}-line`, share));
    for (let index = first; index < last; index++) {
      context.fillStyle = inks[index % 2];
      const [left, right] = [Math.max(x(unit.starts[index]), axis.LEFT), Math.min(x(unit.ends[index]), width - axis.RIGHT)];
      const name = words.purpose(unit.items[index]);
      if (name && right - left > NAMED && context.measureText(name).width < right - left - 8) context.fillText(name, left + 4, y + lane / 2 + 4);
    }
  }

  function scale(context, width, x) {
    const y = bottom();
    context.fillStyle = colours.of("soft");
    context.fillText("cycles", 12, y + 13);
    context.fillText("time", 12, y + 27);
    context.textAlign = "center";
    const [few, more] = [1, 2].map((times) => axis.time.ticks(times * Math.max(2, Math.floor(width / 140))));
    const ticks = few.length > 1 ? few : more;
    const times = words.times(ticks);
    ticks.forEach((tick, index) => {
      const place = Math.min(x(tick), width - 40);
      context.fillRect(x(tick), y - 2, 1, 4);
      context.fillText(words.number(tick), place, y + 13);
      context.fillText(times[index], place, y + 27);
    });
    context.textAlign = "start";
  }

  /** The lanes' names beside them, with the shares of the shown time that the units work; and what a column stands for. */
  function told(x) {
    const [from, to] = axis.window();
    labels.forEach((label, index) => {
      label.style.top = `${topOf(index)}px`;
      label.style.height = `${lane}px`;
      dom.write(label.querySelector("small"), words.tenths(lanes.share(own[index][0], from, to)));
    });
    const cycles = Math.max(1, (to - from) / Math.ceil(x(to) - x(from)));
    const which = own.flatMap(([unit], index) => (dense[index] ? [unit.name] : []));
    const whose = which.length === own.length ? "" : ` of ${which.join(", ")}`;
    dom.write(document.getElementById("columns"), which.length ? `each column${whose} is ${words.counted(cycles, "cycle")}` : "each bar is an instruction");
  }

  const laneAt = (y) => own.findIndex((_, index) => y >= topOf(index) && y < topOf(index) + lane + GAP);

  /** What is under an event: in the band a layer or a call; in a lane an instruction, in a gap of the matrix unit the one that waits. */
  function under(event) {
    const box = band.at(event.offsetX, event.offsetY);
    if (box) return band.selected(box);
    const index = laneAt(event.offsetY);
    if (index < 0 || event.offsetX < axis.LEFT) return null;
    const [time, slack] = [view.timeAt(event.offsetX), view.slack(2)];
    for (const [found, near] of [...own[index].map((one) => [one, 0]), [own[index][0], slack]]) {
      const place = lanes.at(found, time, near);
      if (place >= 0 && found.items[place] >= 0) return { kind: "instruction", id: found.items[place] };
    }
    return null;
  }

  /** The same in words: of a lane, what its unit does in the column or the bar. */
  function about(event) {
    const box = band.at(event.offsetX, event.offsetY);
    if (box) return band.about(box);
    const index = laneAt(event.offsetY);
    if (index < 0 || event.offsetX < axis.LEFT) return "";
    const time = view.timeAt(event.offsetX);
    if (!dense[index]) return single(index, time);
    const span = [time - view.slack(0.5), time + view.slack(0.5)];
    const parts = own[index].map((found) => [index === MATRIX ? nameOf(found) : "busy", lanes.share(found, ...span)]).filter(([, share]) => share > 0);
    const said = parts.map(([name, share]) => `${name} ${words.tenths(share)}`).join(", ");
    return `${own[index][0].name}, ${words.span(...span)}\n${said || "idle"}`;
  }

  function single(index, time) {
    for (const found of own[index]) {
      const place = lanes.at(found, time, 0);
      const item = found.items[place] ?? -1;
      const layer = words.carried(item) ? `a transfer of ${words.carried(item)}` : model.layers[model.code.layer[item]]?.name ?? "";
      const does = found.root === undefined ? model.texts[item] ?? found.name : nameOf(found);
      if (place >= 0) return `${[does, layer].filter(Boolean).join(" · ")}\n${words.span(found.starts[place], found.ends[place])}`;
    }
    return "";
  }

  function light(chosen, found, from) {
    chosenLit = found && !found.idle ? found : null;
    lit = chosenLit && {
      units: lanes.units.map((unit) => lanes.part(unit, unit.name === "shift" ? (_, place) => found.fetches.has(place) : (item) => found.instructions[item])),
      stalls: lanes.stalls.map((stall) => lanes.part(stall, (item) => found.instructions[item])),
    };
    const first = found ? found.instructions.indexOf(1) : -1;
    if (first >= 0 && selection.held() && from !== "timeline") {
      const last = found.instructions.lastIndexOf(1);
      axis.reveal(model.code.start[first], Math.max(model.code.end[last], model.code.end[first]));
    }
    if (why.isOn()) explained();
    view.soon();
  }

  /** The rows of the accounting that the program has, each with its colour or hatching. */
  function legend() {
    const active = tips.word(`${model.rows[0].name}, ${model.useful} of its cells in use`, model.rows[0].meaning, dom.make("i", { class: "swatch" }));
    const stalls = lanes.stalls.map(({ root }) => {
      const { meaning, kind, angle, crossed } = model.waits.roots[root];
      return tips.word(meaning, model.rows[root + 1].meaning, dom.make("i", { class: `hatch h-${kind} a-${angle}${crossed ? " crossed" : ""}` }));
    });
    signs = [active, ...stalls];
    tips.explain(document.getElementById("columns"), COLUMNS);
    explained();
  }

  /** What stands above the lanes: what colours and hatchings mean, or how the critical path is made up. */
  function explained() {
    document.getElementById("legend").replaceChildren(...(why.isOn() ? [why.told()] : signs));
    view.soon();
  }

  function clicked(wanted, event) {
    const box = band.at(event.offsetX, event.offsetY);
    if (box && !wanted) band.zoom(box);
    else selection.hold(wanted, "timeline");
  }

  function start() {
    labels = lanes.units.map(({ name }) => {
      const word = tips.word(name, `${model.lanes[name]}. The number is the share of the shown time in which it works.`);
      word.append(dom.make("small"));
      return word;
    });
    document.getElementById("lanes").replaceChildren(...labels);
    canvas.parentElement.style.minHeight = `${top + own.length * (LEAST + GAP) + SCALE}px`;
    view = axis.attach(canvas, draw);
    selection.follow(canvas, "timeline", under, clicked);
    selection.listen(light);
    tips.follow(canvas, about);
    legend();
  }

  return { start, explained, paint: () => view.paint() };
})();
