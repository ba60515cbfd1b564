/**
 * The program timed again on a machine with other numbers, as `tpucc.sim.timing` and `tpucc.explain.critical` do it: when each instruction
 * starts and ends, and the critical path.
 */
const retiming = (() => {
  const { code, machine } = model;
  const given = model.retiming;
  const { target: original, drains, places, limits } = given;
  const units = drains.length;
  const HOST_WORK = "host work";
  const unitOf = code.opcode.map((opcode) => model.opcodes[opcode].unit);
  const [HOST, WEIGHTS] = ["host", "weights"].map((name) => model.units.indexOf(name));
  const INTERRUPT = model.opcodes.findIndex((opcode) => opcode.name === "interrupt_host");
  const moved = decode.plain(given.moved);
  const elements = decode.plain(given.elements);
  const waits = new Map();
  for (const [blocked, awaited, at] of given.waits) for (const index of decode.deltas(at)) waits.set(index, [...(waits.get(index) ?? []), [blocked, awaited]]);

  /** To the nearest whole number, of two that are equally near the even one. */
  function round(value) {
    const nearest = Math.round(value);
    return nearest - value === 0.5 && nearest % 2 ? nearest - 1 : nearest;
  }

  const crossing = (size, bandwidth, target) => Math.max(1, round((size * target.clock_hz) / bandwidth));
  const hostSeconds = (count, target) => target.host_step_seconds + count / target.host_elements_per_second;

  /** The cycles of each instruction: those that depend on the machine's numbers are computed anew. */
  function durations(target) {
    const latency = round(target.host_latency_seconds * target.clock_hz);
    const fetch = crossing(given.tile_bytes, target.weight_bandwidth, target);
    let [transfer, step] = [0, 0];
    return Float64Array.from({ length: code.count }, (_, index) => {
      if (unitOf[index] === WEIGHTS) return fetch;
      if (unitOf[index] !== HOST) return code.end[index] - code.start[index];
      const size = moved[transfer++];
      if (code.opcode[index] !== INTERRUPT) return latency + crossing(size * given.cores, target.host_bandwidth, target);
      const count = elements[step++];
      return count < 0 ? 0 : Math.max(1, round(hostSeconds(count, target) * target.clock_hz)) * given.cores;
    });
  }

  /** What the host's work takes before the program and after it, in seconds. */
  const edges = (target) => given.edges.map((count) => (count ? given.cores * hostSeconds(count, target) : 0));

  /**
   * The units at work, which `tpucc.sim.timing.Clock` is in Python. An *activity* is an instruction, the sums that drain behind it (its
   * number and `count`), or the shift of a tile (its number and twice `count`). `before` has the activity that ended as an instruction began,
   * of several that one which `tpucc.explain.critical` takes, and -1 for none.
   */
  class Clock {
    constructor(lengths) {
      this.lengths = lengths;
      [this.start, this.end] = [new Float64Array(code.count), new Float64Array(code.count)];
      this.before = new Int32Array(code.count).fill(-1);
      [this.readers, this.arrived, this.shifting, this.shifted, this.takers] = [[], [], [], [], []];
      this.last = new Int32Array(units).fill(-1);
      this.hold = Array.from({ length: units }, () => Array.from({ length: units }, () => ({ time: 0, activity: -1 })));
    }

    run() {
      for (let index = 0; index < code.count; index++) {
        if (unitOf[index] < units) this.execute(index, unitOf[index]);
        else this.synchronise(index);
      }
      const all = Array.from(this.last, (_, unit) => this.finished(unit));
      this.makespan = Math.max(0, ...all.map(({ time }) => time));
      this.closing = all.find(({ time, activity }) => activity >= 0 && time === this.makespan)?.activity ?? -1;
      return this;
    }

    /** When others may use what a unit has made. */
    finished(unit) {
      const index = this.last[unit];
      if (index < 0) return { time: 0, activity: -1 };
      return { time: this.end[index] + drains[unit], activity: drains[unit] ? index + code.count : index };
    }

    synchronise(index) {
      const pairs = waits.get(index) ?? [];
      for (const [blocked, awaited] of pairs) this.hold[blocked][awaited] = this.finished(awaited);
      const awaited = pairs.length ? pairs.map(([blocked, other]) => this.hold[blocked][other]) : Array.from(this.last, (_, unit) => this.finished(unit));
      this.start[index] = this.end[index] = Math.max(...awaited.map(({ time }) => time));
    }

    /** An instruction begins when all that it depends on has ended. */
    execute(index, unit) {
      const own = this.last[unit];
      const found = [{ time: own < 0 ? 0 : this.end[own], activity: own }];
      if (code.switches[index]) found.push(this.shift(index));
      if (unit === WEIGHTS) found.push(this.place());
      found.push(...this.hold[unit]);
      const start = Math.max(...found.map(({ time }) => time));
      this.start[index] = start;
      this.end[index] = start + this.lengths[index];
      this.before[index] = found.find(({ time, activity }) => activity >= 0 && time === start)?.activity ?? -1;
      this.last[unit] = index;
      if (unit !== WEIGHTS) return;
      this.readers.push(index);
      this.arrived.push(this.end[index]);
    }

    /** The shift of the next tile, which `index` takes: when it has arrived, and the tile before has been taken. */
    shift(index) {
      const number = this.shifted.length;
      this.shifting.push(Math.max(this.arrived[number], number ? this.start[this.takers[number - 1]] : 0));
      this.shifted.push(this.shifting[number] + machine.shift);
      this.takers.push(index);
      return this.shiftOf(number);
    }

    shiftOf(number) {
      return { time: this.shifted[number], activity: 2 * code.count + number };
    }

    /** When there is a place for the next tile: the one so many before it has left. */
    place() {
      const number = this.readers.length - places;
      return number >= 0 ? this.shiftOf(number) : { time: 0, activity: -1 };
    }
  }

  /** The limit, the instruction and the cycles of an activity, and the number of the one before it. */
  function partOf(clock, number) {
    const { start, end, before, readers, arrived, shifting, shifted, takers } = clock;
    const [own, place] = [number - code.count, number - 2 * code.count];
    if (place >= 0) {
      const previous = arrived[place] === shifting[place] ? readers[place] : before[takers[place - 1]];
      return { limit: given.shift_limit, instruction: readers[place], start: shifting[place], end: shifted[place], previous, isShift: true };
    }
    if (own >= 0) return { limit: given.drain_limit, instruction: own, start: end[own], end: end[own] + drains[unitOf[own]], previous: own };
    const limit = code.opcode[number] === INTERRUPT ? limits.indexOf(HOST_WORK) : given.unit_limits[unitOf[number]];
    return { limit, instruction: number, start: start[number], end: end[number], previous: before[number] };
  }

  /** The critical path to an activity, the last one first. */
  function pathOf(clock, last) {
    const parts = [];
    for (let number = last; number >= 0; number = parts.at(-1).start > 0 ? parts.at(-1).previous : -1) parts.push(partOf(clock, number));
    return parts.filter((part) => part.end > part.start);
  }

  /** The program on a machine with `changed` numbers: its timeline, its critical path, its time in seconds, and what limits it most. */
  function retimed(changed = {}) {
    const target = { ...original, ...changed };
    const clock = new Clock(durations(target)).run();
    const [path, [first, last]] = [pathOf(clock, clock.closing), edges(target)];
    const spent = limits.map(() => 0);
    for (const part of path) spent[part.limit] += part.end - part.start;
    const seconds = spent.map((cycles, limit) => cycles / target.clock_hz + (limits[limit] === HOST_WORK ? first + last : 0));
    const most = Math.max(...seconds);
    const device = clock.makespan / target.clock_hz;
    const { start, end, shifting, makespan } = clock;
    return { start, end, shifting, makespan, path, spent, first, last, device, seconds: first + device + last, limit: most ? limits[seconds.indexOf(most)] : "nothing" };
  }

  let asItIs = null;

  /** The path to the end of an instruction, or to the end of the program (null), on the machine as it is. */
  function pathTo(instruction) {
    asItIs ??= new Clock(durations(original)).run();
    return pathOf(asItIs, instruction ?? asItIs.closing);
  }

  return { retimed, pathTo, original, limits, hostSeconds: edges(original)[0] + edges(original)[1] };
})();
