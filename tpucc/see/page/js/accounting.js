/** Where the cycles of what is selected go: the rows of `stats.json`, which add up to the whole. */
const accounting = (() => {
  const { rows, layers, waits } = model;
  const { make } = dom;

  /** The cycles of these layers, row by row. */
  const spent = (ids) => rows.map((_, row) => ids.reduce((sum, id) => sum + layers[id].spent[row], 0));

  /** For how many cycles the matrix unit waits before the instructions of a mask, row by row. */
  function waited(mask) {
    const sums = rows.map(() => 0);
    for (let index = 0; index < waits.start.length; index++) {
      if (mask[waits.instruction[index]]) sums[waits.root[index] + 1] += waits.end[index] - waits.start[index];
    }
    return sums;
  }

  const cell = (text) => make("td", {}, text);

  function table(sums) {
    const whole = sums.reduce((sum, cycles) => sum + cycles, 0);
    const shares = sums.map((cycles) => (100 * cycles) / Math.max(1, whole));
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

  const APART = "Counted by the time that the band gives the layers. What lights up goes by instruction, and an instruction's waits light up with it: so the two can differ.";
  const WHOLE = ["layer", "line", "box", "origin"];

  /** The section of the panel: the cycles of whole layers, or the waits before single instructions. A box of the host has none. */
  function about(chosen, lit) {
    if (words.isHosts(chosen)) return [];
    if (WHOLE.includes(chosen.kind)) return section(tips.word("The matrix unit's cycles", APART), spent(words.costed(chosen, lit)));
    return section("Waits of the matrix unit that belong to them", waited(lit.instructions));
  }

  return { about };
})();
