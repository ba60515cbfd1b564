/** What happens, in words. */
const words = (() => {
  const { signed } = boxes;
  const inTile = (tile) => (data.tiles > 1 ? `, tile ${tile}` : "");
  const row = (number) => number % data.count;
  const tile = (number) => Math.floor(number / data.count);

  const shadow = (state, i, j) => {
    if (state.shadow_tile[i][j] <= state.tile[i][j]) return "";
    const value = signed(state.shadow[i][j]);
    const aim = state.shadow_row[i][j];
    return aim > i ? `${value} passes through its shadow, to row ${aim}.` : `In its shadow ${value} waits for the next tile.`;
  };

  const onward = (state, i, j) => {
    const sum = signed(state.sums[i][j]);
    const above = i ? `${signed(state.above[i][j])} came from element (${i - 1},${j}). ` : "";
    const next = i + 1 < data.rows ? `element (${i + 1},${j})` : `the accumulator of row ${row(state.row[i][j])}, column ${j}`;
    return `${above}${sum} goes to ${next}.`;
  };

  const idle = (state, i, j) => {
    if (state.tile[i][j] === NONE) return "has no weight yet";
    return `has nothing to multiply; its weight ${signed(state.weights[i][j])} stays`;
  };

  const REGISTERS = { x: "activation", weights: "weight in use", shadow: "weight in the shadow", sums: "sum" };

  /** Registers of the hardware's element that hold something else than those of the array, in a cycle: their names. */
  const differing = (number, i, j) => {
    const found = data.hardware?.[number] ?? {};
    return Object.keys(found).filter((name) => found[name][i][j] !== data.cycles[number][name][i][j]);
  };

  /** What the element of the hardware holds. */
  const hardware = (number, i, j) => {
    const found = data.hardware?.[number];
    if (!found) return "";
    const held = Object.entries(REGISTERS).map(([name, text]) => `${text} ${signed(found[name][i][j])}`);
    const wrong = differing(number, i, j).map((name) => REGISTERS[name]);
    return `The hardware's registers: ${held.join(", ")}: ${wrong.length ? `NOT EQUAL in ${wrong.join(", ")}` : "equal"}.`;
  };

  /** How many elements of the hardware hold something else. */
  const compared = (number) => {
    if (!data.hardware) return "";
    let wrong = 0;
    for (let i = 0; i < data.rows; i += 1) for (let j = 0; j < data.columns; j += 1) wrong += differing(number, i, j).length > 0;
    return wrong ? `${wrong} of the hardware's elements are NOT EQUAL.` : "All registers of the hardware's elements are equal.";
  };

  /** The computation of an element in row i and column j, in a cycle: sentences. */
  const element = (number, i, j) => {
    const state = data.cycles[number];
    const where = `element (${i},${j}), cycle ${number}`;
    const owner = state.row[i][j];
    if (owner === NONE) return [`${where}: ${idle(state, i, j)}`, shadow(state, i, j), hardware(number, i, j)];
    const product = `${signed(state.x[i][j])} × ${signed(state.weights[i][j])}`;
    const sum = `${product} + ${signed(state.above[i][j])} = ${signed(state.sums[i][j])}`;
    return [`${where}: ${sum}; row ${row(owner)} of the input${inTile(tile(owner))}`, onward(state, i, j), shadow(state, i, j), hardware(number, i, j)];
  };

  /** What the accumulator of row i of the input and column j holds in a cycle: sentences. */
  const sum = (number, i, j) => {
    const state = data.cycles[number];
    const where = `accumulator of row ${i}, column ${j}, cycle ${number}`;
    const said = `NumPy says ${signed(data.product[i][j])}.`;
    const tiles = state.summed[i][j];
    if (!tiles) return [`${where}: nothing yet`, said];
    const value = signed(state.accumulators[i][j]);
    if (tiles < data.tiles) return [`${where}: ${value}, of ${tiles} of ${data.tiles} tiles`, said];
    return [`${where}: ${value}, ${state.accumulators[i][j] === data.product[i][j] ? "equal" : "NOT EQUAL"}`, said];
  };

  const progress = (state) => {
    const sums = data.count * data.columns;
    if (!state.done) return "";
    if (state.equal !== state.done) return `${state.done - state.equal} of ${state.done} complete sums are NOT EQUAL to NumPy's.`;
    if (state.done === sums) return `All ${sums} sums are complete, and equal to X @ W by NumPy.`;
    return `${state.done} of ${sums} sums ${state.done === 1 ? "is" : "are"} complete, and equal to NumPy's.`;
  };

  /** What happens in a cycle: sentences. */
  const cycle = (number) => {
    const state = data.cycles[number];
    const elements = data.rows * data.columns;
    return [
      state.shifting === NONE ? "" : `Tile ${state.shifting} of the weights shifts in, a row a cycle, into the shadows.`,
      state.read === NONE ? "" : `Row ${row(state.read)} of the input is read into the setup${data.tiles > 1 ? ` for tile ${tile(state.read)}` : ""}.`,
      `${state.busy} of ${elements} elements ${state.busy === 1 ? "multiplies" : "multiply"}.`,
      progress(state),
      compared(number),
    ].filter(Boolean);
  };

  return { element, sum, cycle, differing };
})();
