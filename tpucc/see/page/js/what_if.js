/** The view What if: a slider for each number of the machine, and the units' time before and after. */
const whatIf = (() => {
  const view = document.getElementById("view-whatif");
  const canvas = view.querySelector("canvas");
  const lead = view.querySelector(".lead");
  const [LEFT, RIGHT, LANE, GAP, SCALE] = [84, 40, 18, 4, 26];
  const FASTER = { min: -3, max: 4, step: 0.5, TWICE: 1 }; // powers of two
  const names = ["host work", ...lanes.units.map((lane) => lane.name)];
  const initial = lead.textContent;
  const times = new Map();
  let [before, after, waiting] = [null, null, false];

  /** The number of a field that makes it so many times as fast: a rate is larger then, a duration shorter. */
  const valueOf = (field, factor) => retiming.original[field] * (model.retiming.rates[field] ? factor : 1 / factor);

  function valueWords(field, value) {
    const [divisor, unit] = model.retiming.rates[field] ?? [];
    return unit ? `${words.significant(value / divisor)} ${unit}` : words.duration(value);
  }

  /** Gives the row of a number its slider, and a button that makes it twice as fast. */
  function furnished(row) {
    const { field } = row.dataset;
    const name = row.cells[0].firstChild.textContent;
    const { min, max, step, TWICE } = FASTER;
    const now = row.querySelector("small");
    const asItIs = now.textContent;
    const turned = () => {
      const factor = 2 ** Number(input.value);
      times.set(field, factor);
      dom.write(now, factor === 1 ? asItIs : `${asItIs} → ${valueWords(field, valueOf(field, factor))}`);
      changed();
    };
    const input = dom.make("input", { type: "range", min, max, step, value: 0, "aria-label": `${name}: how many times as fast`, input: turned });
    const twice = () => {
      input.value = TWICE;
      turned();
    };
    row.cells[1].append(dom.make("button", { click: twice, "aria-label": `${name} twice as fast` }, "try"));
    row.cells[3].replaceChildren(input);
  }

  /** Times the program again for all that has changed since the last frame. */
  function changed() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      after = timed(Object.fromEntries([...times].map(([field, factor]) => [field, valueOf(field, factor)])));
      dom.write(lead, sentence());
      draw();
    });
  }

  /** The program on such a machine, with its lanes. */
  function timed(numbers) {
    const found = retiming.retimed(numbers);
    return { ...found, lanes: lanes.timed(found, Float64Array.from(found.shifting)) };
  }

  function sentence() {
    const [was, is] = [before.seconds, after.seconds];
    if ([...times.values()].every((factor) => factor === 1)) return initial;
    const change = was === is ? "as before" : `${words.percent(Math.abs(was - is), was)} ${is < was ? "less" : "more"} than ${words.duration(was)}`;
    const limit = after.limit === before.limit ? `still ${after.limit}` : `${after.limit}, no longer ${before.limit}`;
    return `A batch takes ${words.duration(is)}, ${change}: ${words.counted(after.makespan, "cycle")} of the device, which were ${words.number(before.makespan)}. ${words.percent(model.useful_share * before.makespan, after.makespan)} of the array's peak does the model's work. Bottleneck: ${limit}.`;
  }

  /** In each lane above the unit's time as it is, pale, and below as it would be: on one axis of time, which begins with the host's work. */
  function draw() {
    if (!canvas.clientWidth || !after) return; // not shown
    const [width, height, ratio] = [canvas.clientWidth, names.length * (LANE + GAP) + SCALE, window.devicePixelRatio || 1];
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = getComputedStyle(canvas).font;
    const longest = Math.max(before.seconds, after.seconds) || 1;
    const x = (seconds) => LEFT + (seconds / longest) * (width - LEFT - RIGHT);
    names.forEach((name, index) => {
      const y = index * (LANE + GAP);
      context.fillStyle = colours.of("soft");
      context.fillText(name, 0, y + LANE / 2 + 4);
      context.fillStyle = colours.of("band");
      context.fillRect(LEFT, y, width - LEFT - RIGHT, LANE);
      half(context, before, index, y, x, "");
      half(context, after, index, y + LANE / 2, x, "-line");
    });
    scaled(context, names.length * (LANE + GAP), x, longest);
  }

  /** The time of one lane in half of its height. */
  function half(context, found, index, y, x, ink) {
    const { first, last } = found;
    const high = LANE / 2 - 1;
    const lane = found.lanes[index - 1];
    context.fillStyle = colours.of(`${lane?.kind ?? "host"}${ink}`);
    if (!lane) {
      context.fillRect(x(0), y, x(first) - x(0), high);
      context.fillRect(x(found.seconds - last), y, x(found.seconds) - x(found.seconds - last), high);
      return;
    }
    const [from, to] = [x(first), x(first + found.device)];
    const cycles = found.makespan / Math.max(1, to - from);
    for (let column = 0; column < to - from && lane.starts.length; column++) {
      context.globalAlpha = Math.min(1, lanes.share(lane, column * cycles, (column + 1) * cycles));
      context.fillRect(from + column, y, 1, high);
    }
    context.globalAlpha = 1;
  }

  function scaled(context, y, x, longest) {
    context.fillStyle = colours.of("soft");
    context.textAlign = "center";
    for (const found of new Set([before, after])) {
      const place = x(found.seconds);
      context.fillRect(place, 0, 1, y);
    }
    const power = 10 ** Math.floor(Math.log10(longest / 4));
    const step = power * ([1, 2, 5].find((factor) => factor * power >= longest / 5) ?? 10);
    for (let tick = 0; tick <= longest * 1.0001; tick += step) context.fillText(words.duration(tick), x(tick), y + 14);
    context.textAlign = "start";
  }

  function start() {
    for (const row of view.querySelectorAll("tr[data-field]")) furnished(row);
    window.addEventListener("resize", draw);
  }

  /** The view is shown: the program is timed once as it is. */
  function shown() {
    before ??= timed({});
    after ??= before;
    draw();
  }

  return { start, shown, draw };
})();
