/** Where the cycles of what is selected go: the rows of `stats.json`, which add up to the whole. */
const accounting = (() => {
  const { rows, layers, waits } = model;
  const { make } = dom;

  /** The nearest whole number; of two as near, the even one. */
  function nearest(value) {
    const found = Math.round(value);
    return found - value === 0.5 && found % 2 ? found - 1 : found;
  }

  /** Percentages in tenths whose sum is that of the exact ones, as `tpucc.sim.accounting.tenths` makes them. */
  function tenths(shares) {
    const rounded = shares.map((share) => nearest(share * 10));
    const missing = nearest(shares.reduce((sum, share) => sum + share * 10, 0)) - rounded.reduce((sum, part) => sum + part, 0);
    const order = shares.map((_, index) => index).sort((a, b) => shares[b] - shares[a]);
    for (const index of order.slice(0, Math.abs(missing))) rounded[index] += Math.sign(missing);
    return rounded.map((part) => part / 10);
  }

  /** The cycles of these layers, row by row. */
  const spent = (ids) => rows.map((_, row) => ids.reduce((sum, id) => sum + layers[id].spent[row], 0));

  /** For how many cycles the matrix unit waits before the instructions of a mask, row by row. */
  function waited(mask) {
    const sums = rows.map(() => 0);
    for (let index = 0; index < waits.start.length; index++) {
      if (mask[waits.instruction[index]]) sums[waits.cause[index] + 1] += waits.end[index] - waits.start[index];
    }
    return sums;
  }

  const cell = (text) => make("td", {}, text);

  function table(sums) {
    const whole = sums.reduce((sum, cycles) => sum + cycles, 0);
    const shares = tenths(sums.map((cycles) => (100 * cycles) / Math.max(1, whole)));
    const lines = rows.flatMap(({ name, meaning }, row) => {
      const found = make("tr", {}, make("td", {}, tips.word(name, meaning)), cell(words.number(sums[row])), cell(`${shares[row].toFixed(1)} %`));
      return sums[row] ? [found] : [];
    });
    const all = make("tr", {}, cell("in all"), cell(words.number(whole)), cell("100.0 %"));
    return make("table", { class: "spent" }, ...lines, all);
  }

  function section(title, sums) {
    return sums.some(Boolean) ? [make("h3", {}, title), table(sums)] : [];
  }

  const WHOLE = ["layer", "line", "box", "origin"];

  /** The section of the panel: the cycles of whole layers, or the waits before single instructions. A box of the host has none. */
  function about(chosen, lit) {
    if (words.isHosts(chosen)) return [];
    if (WHOLE.includes(chosen.kind)) return section("The matrix unit's cycles", spent([...lit.layers]));
    return section("Waits of the matrix unit that belong to them", waited(lit.instructions));
  }

  return { about, tenths };
})();
