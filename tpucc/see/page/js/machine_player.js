/** The way through the program: play, steps by instruction and by event, breakpoints, the playhead; by mouse and by keys. */
const machinePlayer = (() => {
  const { order, starts, events, until } = machineState;
  const { panel } = machinePlan;
  const { code, layers } = model;
  const [EVENT, GLIDE] = [700, 260];
  const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 64];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const final = events.length - 1;
  let at = 0; // in events: 2.5 is half way between the third and the fourth
  let focus = 0; // which instruction of `order` is told about
  let goal = 0; // where a glide ends
  let playing = false;
  let before = 0; // when the last frame was drawn
  let frame = 0;
  let shown = null;
  let state = null; // from one event to the next it is the same, but for its time
  let since = -1; // the event at which it begins
  let across = 0; // pixels of the axis of time

  /** The cycle of a place among the events. */
  function cycle(place) {
    const whole = Math.floor(place);
    return events[whole] + (place - whole) * ((events[whole + 1] ?? events[whole]) - events[whole]);
  }

  const placeOf = (time) => until(events, time) - 1;

  function draw() {
    const whole = Math.floor(at);
    if (whole !== since) {
      [since, state] = [whole, machineState.at(events[whole])];
      shown.head.ariaValueNow = String(whole + 1);
    }
    state.time = cycle(still.matches ? whole : at);
    machinePlan.show(state);
    dom.write(shown.cycle, `event ${words.number(whole + 1)} of ${words.number(events.length)}, cycle ${words.number(Math.floor(state.time))} of ${words.number(model.cycles)}`);
    cursor(state.time);
  }

  /** A line at the cycle that is shown: over the lanes, and over the map of the buffer. */
  function cursor(time) {
    const [from, to] = axis.window();
    const hidden = views.current() !== "machine" || time < from || time > to;
    for (const line of shown.cursors) {
      if (line.hidden !== hidden) line.hidden = hidden;
      line.style.transform = `translateX(${axis.LEFT + (across * (time - from)) / (to - from)}px)`;
    }
  }

  /** That an instruction has ended at the event that is told about, or that its sums drain. */
  function ended(index) {
    const time = events[goal];
    const complete = machineState.complete(index);
    if (code.end[index] > time || code.end[index] === code.start[index]) return "";
    return complete > time ? `, its sums drain until cycle ${words.number(complete)}` : `, it ended in cycle ${words.number(complete)}`;
  }

  /** Tells what changes: of the instruction that has the focus, and then of others. */
  function tell() {
    const index = order[focus];
    const layer = layers[code.layer[index]];
    const line = layer ? model.origins[layer.origin].line : 0;
    const happening = machineState.happening(events[goal]);
    const others = happening.filter(({ item }) => item !== index).map(({ text }) => text);
    const more = others.length > 2 ? [...others.slice(0, 2), `${words.number(others.length - 2)} more`] : others;
    const said = [
      `${[first(index, happening.find(({ item, begins }) => begins && item === index)), ...more].join("; ")}.`,
      layer ? `${words.carried(index) ? `A transfer of ${words.carried(index)}, for` : "For"} ${layer.name}${line ? `, line ${line}: ${(model.lines[line - 1] ?? "").trim()}` : ""}` : "",
    ];
    shown.now.replaceChildren(...said.filter(Boolean).map((text) => dom.make("p", {}, text)));
  }

  /** What is to be said of the instruction that has the focus: it waits, begins, is at work or has ended. */
  function first(index, begun) {
    if (starts[focus] > events[goal]) return `Here instruction ${words.number(index)} waits before it ${model.said(index)}`;
    if (begun) return `The ${model.machine_view.units[begun.unit].name} begins instruction ${words.number(index)}: it ${model.said(index)}`;
    return `Instruction ${words.number(index)} ${model.said(index)}${ended(index)}`;
  }

  /** Where it is after so many milliseconds of play. */
  function playOn(passed) {
    at = Math.min(final, at + (passed / EVENT) * Number(shown.speed.value));
    const reached = Math.floor(at);
    const last = Math.max(0, until(starts, events[reached]) - 1);
    if (reached !== goal || last !== focus) {
      [goal, focus] = [reached, last];
      tell();
    }
    if (at >= final) pause();
  }

  /** Where it is after so many milliseconds of a glide. */
  function glideOn(passed) {
    const left = goal - at;
    at = Math.abs(left) < 0.01 || passed >= GLIDE ? goal : at + left * Math.min(1, passed / (GLIDE / 3));
    if (left > 0 && at === goal) tell();
  }

  function step(time) {
    frame = 0;
    const passed = Math.min(100, Math.max(0, time - before)); // a frame may be dated before the key that asked for it
    before = time;
    if (playing) playOn(passed);
    else glideOn(passed);
    draw();
    if (playing || at !== goal) next();
  }

  function next() {
    if (!frame) frame = requestAnimationFrame(step);
  }

  /** Goes to a place; near ones by a glide, so that one sees what moves. On the way forward it tells what it reaches when it is there. */
  function go(place, told, source = "machine") {
    halt();
    goal = Math.min(final, Math.max(0, place));
    focus = told ?? Math.max(0, until(starts, events[goal]) - 1);
    if (still.matches || Math.abs(goal - at) > 1.5 || source !== "machine") at = goal;
    if (at >= goal) tell();
    before = performance.now();
    draw();
    if (at !== goal) next();
    if (source === "machine") selection.hold({ kind: "instruction", id: order[focus] }, "machine");
  }

  function halt() {
    playing = false;
    shown.play.textContent = "▶ play";
  }

  function pause() {
    const place = Math.min(final, Math.round(at));
    go(place, Math.max(0, until(starts, events[place]) - 1));
  }

  /** Plays, or pauses. What is held is let go of: another instruction begins at each event, and all views would show each. A pause holds one again. */
  function play() {
    if (playing) {
      pause();
      return;
    }
    if (at >= final) at = 0;
    playing = true;
    if (selection.held()) selection.hold(null, "machine");
    shown.play.textContent = "❚❚ pause";
    before = performance.now();
    next();
  }

  const byEvent = (steps) => go((steps > 0 ? Math.floor(at) : Math.ceil(at)) + steps);

  function byInstruction(steps) {
    const told = Math.min(order.length - 1, Math.max(0, focus + steps));
    go(placeOf(starts[told]), told);
  }

  /** The steps at which instructions begin for which `test` holds, the first of each row of them. */
  function firsts(test) {
    const found = [];
    order.forEach((index, place) => test(index) && !(index && test(index - 1)) && found.push({ place: placeOf(starts[place]), turn: place, told: place }));
    return found;
  }

  /** Where the matrix unit begins to wait, and the product that does. */
  function stalls() {
    const places = new Map(order.map((index, place) => [index, place]));
    return (machineState.stretches[machineState.MATRIX] ?? []).map((one) => ({ place: placeOf(one.start), told: places.get(one.instruction) }));
  }

  /** Where a breakpoint stops, and of which step it tells then: `stall`, `layer N` or `line N`. Several steps may begin in one place. */
  function stops(wanted) {
    const [kind, number] = wanted.split(" ");
    if (kind === "stall") return stalls();
    const owns = kind === "layer" ? (index) => code.layer[index] === Number(number) : (index) => model.origins[layers[code.layer[index]]?.origin]?.line === Number(number);
    return firsts(owns);
  }

  function toBreak(way) {
    const found = stops(shown.stop.value);
    const [here, exact] = [Math.floor(at), at === Math.floor(at)];
    const later = ({ place, turn }) => place > here || (place === here && exact && turn > focus);
    const earlier = ({ place, turn }) => place < here || (place === here && (!exact || turn < focus));
    const target = way > 0 ? found.find(later) : found.findLast(earlier);
    if (target) go(target.place, target.told);
    else if (way > 0) go(final);
    else go(0, 0);
  }

  function options() {
    const option = (value, text) => dom.make("option", { value }, text);
    const group = (label, items) => (items.length ? [dom.make("optgroup", { label }, ...items)] : []);
    const lines = [...new Set(layers.map(({ origin }) => model.origins[origin].line).filter(Boolean))].sort((a, b) => a - b);
    return [
      option("stall", "stall of the matrix unit"),
      ...group("layer", layers.map(({ name }, id) => option(`layer ${id}`, name))),
      ...group("line", lines.map((line) => option(`line ${line}`, `${line}  ${(model.lines[line - 1] ?? "").trim().slice(0, 40)}`))),
    ];
  }

  function controls() {
    const button = (text, label, click) => dom.make("button", { "aria-label": label, title: label, click }, text);
    const playButton = dom.make("button", { title: "play or pause (g)", click: play, class: "play" }, "▶ play");
    const stop = dom.make("select", { "aria-label": "breakpoint" }, ...options());
    const speed = dom.make("select", { "aria-label": "speed" }, ...SPEEDS.map((factor) => dom.make("option", factor === 1 ? { value: factor, selected: "" } : { value: factor }, `${factor} ×`)));
    const clock = dom.make("span", { class: "cycle" });
    const group = (label, ...children) => dom.make("span", { role: "group", "aria-label": label }, dom.make("span", { class: "soft" }, label), ...children);
    panel.querySelector(".steps").replaceChildren(
      playButton,
      speed,
      group("instruction", button("◀", "the instruction before (<)", () => byInstruction(-1)), button("▶", "the next instruction (>)", () => byInstruction(1))),
      group("event", button("◀", "the event before (,)", () => byEvent(-1)), button("▶", "the next event (.)", () => byEvent(1))),
      group("to", stop, button("◀", "back to the breakpoint (B)", () => toBreak(-1)), button("▶", "on to the breakpoint (b)", () => toBreak(1))),
      clock,
    );
    const plots = [...document.querySelectorAll("#time .plot")];
    const cursors = plots.map((plot) => plot.appendChild(dom.make("div", { class: "cursor", hidden: "" })));
    new ResizeObserver(() => {
      across = plots[0].clientWidth - axis.LEFT - axis.RIGHT;
      cursor(cycle(at));
    }).observe(plots[0]);
    return { play: playButton, stop, speed, head: cursors[0].appendChild(playhead()), cycle: clock, now: panel.querySelector(".now"), cursors };
  }

  /** The handle of the line over the lanes: it can be dragged through time, and moved with keys from event to event. */
  function playhead() {
    const keys = { ArrowLeft: () => byEvent(-1), ArrowRight: () => byEvent(1), Home: () => go(0), End: () => go(final) };
    const head = dom.make("div", { class: "playhead", role: "slider", tabindex: "0", title: "drag, or arrow keys", "aria-label": "event", "aria-valuemin": 1, "aria-valuemax": events.length, "aria-valuenow": 1, keydown: press });
    function press(event) {
      if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      keys[event.key]();
    }
    dom.drag(head, () => ({ time: cycle(at), pixel: axis.time.width / across }), ({ time, pixel }, dx) => go(Math.max(0, placeOf(time + dx * pixel))));
    return head;
  }

  /** Where what is held elsewhere begins is where the machine goes. */
  function follow(chosen, lit, source) {
    if (views.current() !== "machine" || source === "machine" || !selection.held()) return;
    const told = order.findIndex((index) => lit.instructions[index]);
    if (told >= 0) go(placeOf(starts[told]), told, source || "address");
  }

  const here = (run) => () => views.current() === "machine" && run();
  const keys = [
    { keys: ["g"], does: "in Machine: play or pause", run: here(play) },
    { keys: ["<", ">"], does: "in Machine: the instruction before, the next one", run: (event) => here(() => byInstruction(event.key === ">" ? 1 : -1))() },
    { keys: [",", "."], does: "in Machine: the event before, the next one", run: (event) => here(() => byEvent(event.key === "." ? 1 : -1))() },
    { keys: ["b", "B"], does: "in Machine: on or back to the breakpoint", run: (event) => here(() => toBreak(event.key === "b" ? 1 : -1))() },
  ];

  function start() {
    shown = controls();
    panel.querySelector(".left-out").replaceChildren(...dom.prose(model.machine_view.left_out));
    machinePlan.start(draw);
    selection.listen(follow);
    axis.listen(() => cursor(cycle(at)));
    tell();
  }

  /** The view comes to be seen, or another one does. */
  function entered() {
    if (views.current() !== "machine") {
      if (playing) halt();
      cursor(cycle(at));
      return;
    }
    follow(selection.current(), selection.lit(), "");
    draw();
  }

  return { start, entered, keys };
})();
