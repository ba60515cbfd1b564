/** What the machine does in each cycle: a function of the cycle alone, so that forward and back are the same. */
const machineState = (() => {
  const { code, fetches, shifts, waits, machine, buffers } = model;
  const data = model.machine_view;
  const [FETCH, MATRIX, SHIFT] = [1, 2, 5];

  /** How many of the values, which ascend, are at most `wanted`. */
  function until(values, wanted) {
    let [low, high] = [0, values.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** What the units do: for each the starts and ends of what it works on, and its instructions; of the shift the fetches' numbers. */
  function work() {
    const own = Object.fromEntries(Object.keys(data.units).map((unit) => [unit, []]));
    for (let index = 0; index < code.count; index++) own[model.opcodes[code.opcode[index]].unit]?.push(index);
    const timed = (items) => ({ items, start: Float64Array.from(items, (index) => code.start[index]), end: Float64Array.from(items, (index) => code.end[index]) });
    const found = Object.fromEntries(Object.entries(own).map(([unit, items]) => [unit, timed(items)]));
    found[SHIFT] = { items: Array.from(shifts.keys()), start: shifts, end: shifts.map((start) => start + machine.shift) };
    return found;
  }

  /** Why units wait, for each unit in the order of time. */
  function waiting() {
    const packed = data.waiting;
    const [unit, reason] = [packed.unit, packed.reason].map(decode.octets);
    const [instruction, start, number] = [packed.instruction, packed.start, packed.number].map(decode.deltas);
    const [length, span] = [packed.length, packed.span].map(decode.plain);
    const found = {};
    unit.forEach((one, index) => {
      const end = start[index] + length[index];
      (found[one] ??= []).push({ instruction: instruction[index], start: start[index], end, number: number[index], begin: end - span[index], text: packed.words[reason[index]] });
    });
    return found;
  }

  /** The recorded values: for each instruction of the window what it reads and what it writes. */
  function recorded() {
    if (!data.steps) return { steps: new Map(), corners: new Map() };
    const [reads, writes, box, height, width] = [data.reads, data.writes, data.box, data.height, data.width].map(decode.octets);
    const [rows, values] = [decode.deltas(data.row), decode.plain(data.values)];
    let [operand, row, value] = [0, 0, 0];
    function seen() {
      const found = { box: data.boxes[box[operand]], rows: [] };
      for (let place = 0; place < height[operand]; place++) {
        found.rows.push({ row: rows[row++], values: Array.from(values.subarray(value, value + width[operand])) });
        value += width[operand];
      }
      operand += 1;
      return found;
    }
    const several = (count) => Array.from({ length: count }, seen);
    const steps = new Map(Array.from(decode.deltas(data.steps), (index, place) => [index, { reads: several(reads[place]), writes: several(writes[place]) }]));
    const corner = decode.plain(data.corners.values);
    const numbers = decode.deltas(data.corners.fetch);
    const side = Math.sqrt(corner.length / Math.max(1, numbers.length));
    const square = (place) => Array.from({ length: side }, (_, line) => Array.from(corner.subarray((place * side + line) * side, (place * side + line + 1) * side)));
    return { steps, corners: new Map(Array.from(numbers, (number, place) => [number, square(place)])) };
  }

  /** The rows that each instruction reads and writes: [{box, reads, low, high}] of the interval [low, high) around them. */
  function reaching({ instruction, kind, low, span }) {
    const found = Array.from({ length: code.count }, () => []);
    const [kinds, lows, spans] = [decode.octets(kind), decode.deltas(low), decode.plain(span)];
    decode.deltas(instruction).forEach((index, place) => found[index].push({ box: data.memories[kinds[place] >> 1], reads: kinds[place] % 2 === 0, low: lows[place], high: lows[place] + spans[place] }));
    return found;
  }

  /** All values of several columns, ascending, each once. */
  function ascending(columns) {
    const all = new Float64Array(columns.reduce((count, column) => count + column.length, 0));
    let filled = 0;
    for (const column of columns) {
      all.set(column, filled);
      filled += column.length;
    }
    return all.sort().filter((value, place) => !place || value !== all[place - 1]);
  }

  const units = work();
  const stretches = waiting();
  const stretchStarts = Object.fromEntries(Object.entries(stretches).map(([unit, own]) => [unit, own.map(({ start }) => start)]));
  const { steps, corners } = recorded();
  const reaches = reaching(data.reaches);
  const tiles = decode.deltas(data.tiles);
  const heights = decode.plain(data.rows);
  const arrived = fetches.map(({ read }) => code.end[read]);
  const shifted = shifts.map((start) => start + machine.shift);
  const takers = Array.from(code.switches.keys()).filter((index) => code.switches[index] && model.opcodes[code.opcode[index]].unit === MATRIX);
  const taken = takers.map((index) => code.start[index]);

  /** All instructions by their starts, and all cycles in which something begins or ends. */
  const order = Array.from({ length: code.count }, (_, index) => index).sort((a, b) => code.start[a] - code.start[b] || a - b);
  const starts = Float64Array.from(order, (index) => code.start[index]);
  const sums = units[MATRIX].end.map((end) => end + data.pipeline);
  const events = ascending([[0], code.start, code.end, shifts, shifted, sums]);

  /** The product whose sums drain at a time at which the matrix unit multiplies no rows, and when they are complete: {item, complete}, or null. */
  function draining({ does, last }, time) {
    if (does === "works" || last < 0 || complete(last) <= time) return null;
    return { item: last, complete: complete(last) };
  }

  /** The rows of the unified buffer that have an owner, as steps. */
  const [changes, owned] = (() => {
    const all = buffers.flatMap(({ from, to, rows: count }) => [[from, count], [to, -count]]).sort((a, b) => a[0] - b[0]);
    let sum = 0;
    return [all.map(([cycle]) => cycle), all.map(([, count]) => (sum += count))];
  })();

  const completed = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => words.number(values[name]));

  /** What a unit does at a time: it works on an item, waits, or has nothing left. */
  function unitAt(unit, time) {
    const { items, start, end } = units[unit];
    const count = until(start, time);
    const place = count - 1;
    if (place >= 0 && end[place] > time) return { does: "works", item: items[place], start: start[place], end: end[place] };
    const last = count ? items[count - 1] : -1;
    if (count === items.length) return { does: "done", last };
    const stretch = stretches[unit]?.[until(stretchStarts[unit], time) - 1];
    const wait = unit === MATRIX ? until(waits.start, time) - 1 : -1;
    return { does: "waits", last, next: items[count], stretch, root: wait >= 0 && waits.end[wait] > time ? waits.roots[waits.root[wait]].root : "" };
  }

  /** What a unit waits for, in words: those of `tpucc debug`. */
  function waited({ stretch, root }) {
    const said = stretch ? `waits ${words.counted(stretch.end - stretch.start, "cycle")} for ${completed(stretch.text, stretch)}, before instruction ${words.number(stretch.instruction)}` : "waits";
    return root ? `${said}; the root of the wait is ${root}` : said;
  }

  /** What a unit waits for in a few words, and until when. */
  const awaited = (stretch) => `${completed(stretch.text, stretch).split(",")[0]} until cycle ${words.number(stretch.end)}`;

  /** The state at a cycle. `lines` are, for each memory, the operands whose rows it shows. */
  function at(time) {
    const found = Object.fromEntries(Object.keys(units).map((unit) => [unit, unitAt(Number(unit), time)]));
    const moved = until(shifted, time);
    const latest = until(taken, time) - 1;
    const shifting = moved < until(shifts, time) ? moved : -1;
    const fetched = until(arrived, time);
    return {
      time,
      units: found,
      fifo: Array.from({ length: Math.max(0, fetched - moved) }, (_, place) => moved + place),
      shifting,
      coming: found[FETCH].does === "works" ? fetched : -1,
      shadow: moved - 1 > latest ? moved - 1 : -1,
      used: latest,
      owned: owned[until(changes, time) - 1] ?? 0,
      draining: draining(found[MATRIX], time),
      lines: lines(found, time),
    };
  }

  /** When others may use what an instruction has made. */
  const complete = (index) => code.end[index] + (model.opcodes[code.opcode[index]].unit === MATRIX ? data.pipeline : 0);

  /** The instructions that write rows of a box, in the order in which others may use what they wrote, and when that is. */
  function writing(box) {
    const items = order.filter((index) => heights[index] && data.paths[code.opcode[index]].at(-1)?.[1] === box);
    items.sort((a, b) => complete(a) - complete(b) || a - b);
    return { items, ends: items.map(complete) };
  }

  const writers = Object.fromEntries(data.memories.map((box) => [box, writing(box)]));

  /** What an instruction reads, or what it writes: for each operand its memory, its rows, and the values of the first ones where they are recorded. */
  function operands(index, reads, verb, how) {
    const seen = (reads ? steps.get(index)?.reads : steps.get(index)?.writes) ?? [];
    const { name } = data.units[model.opcodes[code.opcode[index]].unit];
    return reaches[index].filter((one) => one.reads === reads).map((reach) => {
      const own = seen.filter(({ box, rows: [first] }) => box === reach.box && reach.low <= first?.row && first.row < reach.high);
      const best = own.find(({ rows: [first] }) => first.row === reach.low) ?? own[0];
      return { box: reach.box, index, verb: `${name} ${verb}`, short: verb, how, reach, rows: best?.rows ?? [] };
    });
  }

  /** What a unit reads and writes now, with the memory of each: of the instruction it works on, and of the last one while its sums drain. */
  function current(unit, { does, item, last }, time) {
    const working = does === "works";
    const index = working ? item : last;
    if (unit === SHIFT || index < 0 || (!working && complete(index) <= time)) return [];
    return [...(working ? operands(index, true, "reads", "read") : []), ...operands(index, false, "writes", "coming")];
  }

  /** Whether rows of the unified buffer belong to a buffer at a time. */
  const isOwned = ({ low, high }, time) => buffers.some((one) => one.from <= time && time < one.to && one.row < high && low < one.row + one.rows);

  /** What was written last in a box. */
  function written(box, time) {
    const { items, ends } = writers[box];
    const index = items[until(ends, time) - 1];
    if (index === undefined) return [];
    const found = operands(index, false, "wrote", "written");
    if (box !== "buffer") return found;
    return found.map((one) => (isOwned(one.reach, time) ? one : { ...one, verb: `${one.verb}; no longer in use` }));
  }

  /** The operands that each memory shows: of the units at work; where none touches it, what was written last. */
  function lines(found, time) {
    const shown = {};
    for (const [unit, state] of Object.entries(found)) {
      for (const line of current(Number(unit), state, time)) (shown[line.box] ??= []).push(line);
    }
    for (const box of Object.keys(writers)) shown[box] ??= written(box, time);
    return shown;
  }

  /** What moves at a time: {unit, from, to, share of the way, text, short}, the last two for places of different widths. */
  function moving(state) {
    const found = [];
    for (const [unit, { does, item, start, end }] of Object.entries(state.units)) {
      if (does !== "works") continue;
      const share = (state.time - start) / (end - start);
      const paths = Number(unit) === SHIFT ? [["fifo", "matrix"]] : data.paths[code.opcode[item]];
      for (const [from, to] of paths) found.push({ unit, from, to, share, ...label(Number(unit), item, state.coming) });
    }
    return found;
  }

  /** What is under way: a tile, or rows. */
  function label(unit, item, coming) {
    const [number, noun] = unit === SHIFT || unit === FETCH ? [tiles[unit === SHIFT ? item : coming], "tile"] : [heights[item], ""];
    return { text: noun ? `${noun} ${words.number(number)}` : words.counted(number, "row"), short: words.number(number) };
  }

  /** What begins and ends in a cycle, in words. */
  function happening(time) {
    const found = [];
    for (const [unit, { items, start, end }] of Object.entries(units)) {
      const place = until(start, time) - 1;
      const named = (item) => (Number(unit) === SHIFT ? `tile ${words.number(tiles[item])}` : `instruction ${words.number(item)}`);
      const before = place - (start[place] === time ? 1 : 0);
      if (before >= 0 && end[before] === time && start[before] < time) found.push({ item: items[before], text: `the ${data.units[unit].name} ends ${named(items[before])}` });
      if (start[place] === time && end[place] > time) found.push({ item: items[place], begins: true, unit, text: `the ${data.units[unit].name} begins ${named(items[place])}` });
    }
    const drained = until(sums, time) - 1;
    if (sums[drained] === time) found.push({ item: -1, text: `the sums of instruction ${words.number(units[MATRIX].items[drained])} are complete` });
    return found;
  }

  return { at, moving, happening, waited, awaited, complete, until, order, starts, events, heights, tiles, corners, stretches, MATRIX };
})();
