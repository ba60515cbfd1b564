/**
 * The critical path on the timeline: what the program's time depends on, from unit to unit. If an instruction is held that takes time, it is
 * what that one had to wait for, one activity after the other, back to the first cycle.
 */
const why = (() => {
  const button = document.getElementById("why");
  const LANES = { host: 0, weights: 1, shift: 2, matrix: 3, activation: 4 };
  let on = false;
  let known = { last: undefined, path: [] };

  /** The path to what is held, or to the end of the program; the first activity first. */
  function path() {
    const held = selection.held();
    const takesTime = held?.kind === "instruction" && model.code.end[held.id] > model.code.start[held.id];
    const last = takesTime ? held.id : null;
    if (known.last !== last) known = { last, path: retiming.pathTo(last).reverse() };
    return known.path;
  }

  const laneOf = (part) => (part.isShift ? LANES.shift : LANES[model.unitOf(part.instruction)]);

  /** The shares of the limits on the path, the largest first, as `critical_path` of `stats.json` has them. */
  function shares() {
    const spent = new Map();
    for (const part of path()) spent.set(part.limit, (spent.get(part.limit) ?? 0) + part.end - part.start);
    const whole = [...spent.values()].reduce((sum, cycles) => sum + cycles, 0) || 1;
    return [...spent].sort((a, b) => b[1] - a[1]).map(([limit, cycles]) => ({ name: retiming.limits[limit], share: cycles / whole }));
  }

  /** A sentence about the path, for the line above the lanes. */
  function told() {
    const parts = shares().map(({ name, share }) => `${name} ${words.tenths(share)}`);
    const to = known.last === null ? "the end of the program" : `instruction ${words.number(known.last)}`;
    return `critical path to ${to}: ${parts.join(", ")}`;
  }

  /** Paints the path in lanes `high` pixels high, whose upper edges are `topOf(lane)`: its activities as bars, its jumps as lines between lanes. */
  function draw(context, x, topOf, high) {
    const [from, to] = axis.window();
    const parts = path().filter((part) => part.end > from && part.start < to);
    for (const part of parts) {
      const lane = laneOf(part);
      context.fillStyle = colours.of(`${lanes.units[lane].kind}-line`);
      context.fillRect(x(part.start), topOf(lane), Math.max(1, x(part.end) - x(part.start)), high);
    }
    context.lineJoin = "round";
    context.beginPath();
    parts.forEach((part, index) => {
      const y = topOf(laneOf(part)) + high / 2;
      if (index) context.lineTo(x(part.start), y);
      else context.moveTo(x(part.start), y);
      context.lineTo(x(part.end), y);
    });
    for (const [ink, width] of [["paper", 5], ["ink", 2]]) {
      context.strokeStyle = colours.of(ink);
      context.lineWidth = width;
      context.stroke();
    }
  }

  function toggle() {
    on = !on;
    button.setAttribute("aria-pressed", String(on));
    timeline.explained();
  }

  const start = () => button.addEventListener("click", toggle);

  return { start, toggle, draw, told, path, isOn: () => on };
})();
