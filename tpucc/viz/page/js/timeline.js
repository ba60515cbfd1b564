/** The timeline: a lane for each unit, what the matrix unit waits for hatched, the layers above, cycles and time below. */
const timeline = (() => {
  const [NAMES, LANE, GAP, SCALE] = [18, 18, 4, 32];
  const FADED = 0.22;
  const canvas = document.getElementById("timeline");
  const tops = lanes.units.map((_, index) => NAMES + index * (LANE + GAP));
  const bottom = NAMES + lanes.units.length * (LANE + GAP);
  const MATRIX = 3;
  let lit = null;
  let view = null;

  function draw(context, width, height, x) {
    lanes.units.forEach((lane, index) => {
      context.fillStyle = colours.of("band");
      context.fillRect(axis.LEFT, tops[index], width - axis.LEFT - axis.RIGHT, LANE);
      context.fillStyle = colours.of("ink");
      context.fillText(lane.name, 12, tops[index] + 13);
    });
    axis.clipped(context, width, height, () => {
      context.globalAlpha = lit ? FADED : 1;
      rows(context, lanes, x);
      context.globalAlpha = 1;
      if (lit) rows(context, lit, x);
      names(context, x, width);
    });
    scale(context, width, x);
  }

  function rows(context, { units, stalls }, x) {
    units.forEach((lane, index) => row(context, index === MATRIX ? [lane, ...stalls] : [lane], tops[index], x));
  }

  /** Single bars where they can be told apart, else for each pixel the shares of time, one on the other. */
  function row(context, group, top, x) {
    const [from, to] = axis.window();
    const spans = group.map((lane) => lanes.meeting(lane, from, to));
    const dense = spans.some(([first, last]) => last - first > x(to) - x(from));
    const heights = new Float64Array(Math.ceil(x(to) - x(from)));
    group.forEach((lane, index) => {
      context.fillStyle = lane.cause === undefined ? colours.of(`${lane.kind}-line`) : colours.hatch(context, model.waits.causes[lane.cause]);
      if (dense) shares(context, lane, top, heights);
      else bars(context, lane, spans[index], top, x);
    });
  }

  function bars(context, lane, [first, last], top, x) {
    for (let index = first; index < last; index++) {
      const [left, right] = [x(lane.starts[index]), x(lane.ends[index])];
      context.fillRect(left, top, Math.max(0.8, right - left - (right - left > 3 ? 0.6 : 0)), LANE);
    }
  }

  function shares(context, lane, top, heights) {
    const [from, to] = axis.window();
    const cycle = (to - from) / heights.length;
    heights.forEach((below, place) => {
      const high = LANE * lanes.share(lane, from + place * cycle, from + (place + 1) * cycle);
      if (high > 0.1) context.fillRect(axis.LEFT + place, top + LANE - below - high, 1, high);
      heights[place] = below + high;
    });
  }

  function names(context, x, width) {
    const starts = [...model.layer_spans.map(([, from]) => x(from)), width];
    context.fillStyle = colours.of("soft");
    model.layer_spans.forEach(([layer, , to], index) => {
      const room = starts[index + 1] - starts[index] - 6;
      const left = Math.max(starts[index], axis.LEFT);
      const { name } = model.layers[layer];
      if (room > 20 && x(to) > axis.LEFT && context.measureText(name).width < room) {
        context.fillText(name, left + 3, 13);
        context.fillRect(starts[index], 2, 1, bottom - 2);
      }
    });
  }

  function scale(context, width, x) {
    context.fillStyle = colours.of("soft");
    context.fillText("cycles", 12, bottom + 13);
    context.fillText("time", 12, bottom + 27);
    context.textAlign = "center";
    const ticks = axis.ticks(Math.max(2, Math.floor(width / 140)));
    const times = words.times(ticks);
    ticks.forEach((tick, index) => {
      const place = Math.min(x(tick), width - 40);
      context.fillRect(x(tick), bottom - 2, 1, 4);
      context.fillText(words.number(tick), place, bottom + 13);
      context.fillText(times[index], place, bottom + 27);
    });
    context.textAlign = "start";
  }

  /** The instruction under an event; in a gap of the matrix unit the one that waits. */
  function under(event) {
    const index = tops.findIndex((top) => event.offsetY >= top && event.offsetY < top + LANE + GAP);
    if (index < 0 || event.offsetX < axis.LEFT) return null;
    const [time, slack] = [view.timeAt(event.offsetX), view.slack(2)];
    for (const [lane, near] of [[lanes.units[index], 0], ...(index === MATRIX ? lanes.stalls.map((stall) => [stall, 0]) : []), [lanes.units[index], slack]]) {
      const place = lanes.at(lane, time, near);
      if (place >= 0 && lane.items[place] >= 0) return { kind: "instruction", id: lane.items[place] };
    }
    return null;
  }

  function light(chosen, found, from) {
    lit = found && !found.idle && {
      units: lanes.units.map((lane) => lanes.part(lane, lane.name === "shift" ? (_, place) => found.fetches.has(place) : (item) => found.instructions[item])),
      stalls: lanes.stalls.map((lane) => lanes.part(lane, (item) => found.instructions[item])),
    };
    const first = found ? found.instructions.indexOf(1) : -1;
    if (first >= 0 && selection.held() && from !== "timeline") {
      const last = found.instructions.lastIndexOf(1);
      axis.reveal(model.code.start[first], Math.max(model.code.end[last], model.code.end[first]));
    }
    view.soon();
  }

  function legend() {
    document.getElementById("legend").replaceChildren(...lanes.stalls.map(({ cause }) => {
      const { meaning, kind, angle } = model.waits.causes[cause];
      return dom.make("span", {}, dom.make("i", { class: `hatch h-${kind} a-${angle}` }), meaning);
    }));
  }

  function start() {
    canvas.style.height = `${bottom + SCALE}px`;
    view = axis.attach(canvas, draw);
    selection.follow(canvas, "timeline", under, (wanted) => selection.hold(wanted, "timeline"));
    selection.listen(light);
    legend();
  }

  return { start, paint: () => view.paint() };
})();
