/** What each unit does when: sorted intervals that don't overlap, and how much of any stretch of time they cover. */
const lanes = (() => {
  const { code, fetches, shifts, waits, machine } = model;

  /** A lane: `items` are the instructions that the intervals belong to. Sums of lengths make any stretch's share one subtraction. */
  function lane(name, kind, starts, ends, items) {
    const sums = new Float64Array(starts.length + 1);
    for (let index = 0; index < starts.length; index++) sums[index + 1] = sums[index] + ends[index] - starts[index];
    return { name, kind, starts, ends, items, sums };
  }

  function ofUnit(name, kind, { start, end }) {
    const own = [];
    for (let index = 0; index < code.count; index++) if (model.unitOf(index) === name && end[index] > start[index]) own.push(index);
    return picked(name, kind, start, end, own, own);
  }

  function picked(name, kind, starts, ends, places, items) {
    return lane(name, kind, Float64Array.from(places, (place) => starts[place]), Float64Array.from(places, (place) => ends[place]), Int32Array.from(items));
  }

  function ofShifts(starts) {
    const reads = Array.from(starts, (_, number) => fetches[number]?.read ?? -1);
    return lane("shift", "weights", starts, starts.map((start) => start + machine.shift), Int32Array.from(reads));
  }

  function ofRoot(root) {
    const own = [];
    waits.root.forEach((other, place) => other === root && own.push(place));
    const { name, kind } = waits.roots[root];
    return { ...picked(name, kind, waits.start, waits.end, own, own.map((place) => waits.instruction[place])), root };
  }

  /** A lane for each unit and one for the shifts of tiles, of instructions that start and end in these cycles. */
  const timed = (times, shifting) => [
    ofUnit("host", "host", times),
    ofUnit("weights", "weights", times),
    ofShifts(shifting),
    ofUnit("matrix", "matrix", times),
    ofUnit("activation", "vector", times),
  ];

  const units = timed(code, shifts);
  const stalls = waits.roots.map((_, root) => ofRoot(root)).filter((found) => found.starts.length);

  /** The first index whose value is greater than `wanted`. */
  function after(values, wanted) {
    let [low, high] = [0, values.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** For how long the lane is busy before `time`. */
  function busy(found, time) {
    const count = after(found.starts, time);
    return count ? found.sums[count] - Math.max(0, found.ends[count - 1] - time) : 0;
  }

  /** The share of [from, to) that the lane is busy. */
  const share = (found, from, to) => (busy(found, to) - busy(found, from)) / (to - from);

  /** The intervals [first, last) that meet [from, to). */
  const meeting = (found, from, to) => [after(found.ends, from), after(found.starts, to)];

  /** How many intervals meet [from, to). */
  function crowd(found, from, to) {
    const [first, last] = meeting(found, from, to);
    return last - first;
  }

  /** The interval at `time`, or the nearest one within `slack` cycles; -1 when there is none. */
  function at(found, time, slack) {
    const next = after(found.starts, time);
    const near = [next - 1, next].filter((index) => index >= 0 && index < found.starts.length);
    const away = (index) => Math.max(found.starts[index] - time, time - found.ends[index], 0);
    const best = near.sort((a, b) => away(a) - away(b))[0] ?? -1;
    return best >= 0 && away(best) <= slack ? best : -1;
  }

  /** The part of a lane whose intervals belong to instructions for which `test` holds. */
  function part(found, test) {
    const own = [];
    found.items.forEach((item, place) => item >= 0 && test(item, place) && own.push(place));
    return { ...picked(found.name, found.kind, found.starts, found.ends, own, own.map((place) => found.items[place])), root: found.root };
  }

  return { units, stalls, timed, share, meeting, crowd, at, part };
})();
