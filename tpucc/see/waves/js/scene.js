/** The picture: every box that there may be, shown and hidden as the registers say. */
const scene = (() => {
  const { Box, corner, element, middle } = boxes;
  const { array, setup, edge, input, accumulators, product, shares } = data.geometry;
  const svg = document.getElementById("picture");
  const bare = !array.font;

  const layer = (look) => element("g", { class: look }, svg);
  const look = (kind, number) => `${kind} row-${(number % data.count) % data.colours}`;
  const grid = (rows, columns, make) => Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (__, j) => make(i, j)));

  const boxesOf = (lattice, rows, columns, inside) =>
    grid(rows, columns, (i, j) => new Box(inside, middle(lattice, i, j), lattice));

  /** The places in an element, and the boxes that stand there. */
  const within = (i, j, right, down) => {
    const { x, y } = corner(array, i, j);
    return { x: x + array.width * right, y: y + array.height * down };
  };
  const pillAt = (i, j) => {
    const { x, y } = within(i, j, 0, shares.lower);
    return { x: x + shares.inset + data.geometry.pill / 2, y };
  };
  const chipSize = { width: data.geometry.chip, height: array.font * shares.chip, font: array.font };
  const pillSize = { ...chipSize, width: data.geometry.pill, radius: 9 };
  const chips = (inside, right, down) =>
    bare ? null : grid(data.rows, data.columns, (i, j) => new Box(inside, within(i, j, right, down), chipSize));

  /** An empty place of a lattice. */
  const dot = (lattice, i, j, inside) => {
    const { x, y } = middle(lattice, i, j);
    element("circle", { cx: x, cy: y, r: Math.min(2.2, lattice.width / 6), class: "dot" }, inside);
  };

  const back = layer("back");
  grid(data.rows, data.rows, (i, j) => j <= i && dot(setup, i, j, back));
  grid(data.count, data.columns, (i, j) => dot(accumulators, i, j, back));
  for (const box of boxesOf({ ...array, font: 0 }, data.rows, data.columns, back).flat()) box.show(0, "place");

  const parts = {
    ground: boxesOf({ ...array, font: 0, radius: 8 }, data.rows, data.columns, layer("grounds")),
    known: boxesOf(input, data.rows, data.count * data.tiles, layer("known")),
    input: boxesOf(input, data.rows, data.count * data.tiles, layer("input")),
    product: boxesOf(product, data.count, data.columns, layer("known")),
    weights: chips(layer("weights"), shares.right, shares.upper),
    shadows: chips(layer("shadows"), shares.right, shares.lower),
    edge: grid(data.columns, data.columns, (delay, j) => {
      const { x, y } = middle(edge, delay, j);
      const size = bare ? edge : { ...edge, width: data.geometry.chip };
      return new Box(svg, { x: x + (bare ? 0 : array.width * (shares.right - 0.5)), y }, size);
    }),
    accumulators: boxesOf(accumulators, data.count, data.columns, layer("accumulators")),
    setup: boxesOf(setup, data.rows, data.rows, layer("setup")),
    x: chips(layer("activations"), shares.left, shares.upper),
    sums: bare ? null : grid(data.rows, data.columns, (i, j) => new Box(layer("sums"), pillAt(i, j), pillSize)),
  };

  /** An equals sign for each row of results. */
  const equals = Array.from({ length: accumulators.font ? data.count : 0 }, (_, i) => {
    const place = { x: array.x - shares.gap / 2, y: middle(accumulators, i, 0).y + 5 };
    const sign = element("text", { ...place, "text-anchor": "middle", class: "equals", "font-size": 15 }, svg);
    sign.textContent = "=";
    return sign;
  });

  /** Shows a grid of boxes: `what(i, j)` is the value, the look, and where it comes from, or null. */
  const place = (shown, duration, what) => {
    shown?.forEach((line, i) =>
      line.forEach((box, j) => {
        const now = what(i, j);
        if (now) box.show(now.value, now.look);
        else box.hide();
        if (now?.from) box.slide(now.from, duration);
      }),
    );
  };

  const drawInput = (state, duration) => {
    place(parts.known, 0, (i, n) => ({ value: data.input[i][n], look: "number" }));
    place(parts.input, 0, (i, n) => (n > state.last ? { value: data.input[i][n], look: look("solid", n) } : null));
    place(parts.setup, duration, (i, delay) => {
      const owner = state.setup_row[i][delay];
      if (owner === NONE) return null;
      const from = delay === i ? middle(input, i, owner) : middle(setup, i, delay + 1);
      return { value: state.setup[i][delay], look: look("solid", owner), from };
    });
  };

  const drawWeights = (state, before, duration) => {
    place(parts.edge, duration, (delay, j) => {
      if (state.edge_row[j][delay] === NONE) return null;
      const at = parts.edge[delay][j].at;
      return { value: state.edge[j][delay], look: "weight waiting", from: { x: at.x, y: at.y + edge.down } };
    });
    place(parts.weights, 0, (i, j) => (state.tile[i][j] === NONE ? null : { value: state.weights[i][j], look: "weight" }));
    place(parts.shadows, duration, (i, j) => {
      if (state.shadow_tile[i][j] <= state.tile[i][j]) return null;
      const came = !before || ["shadow_tile", "shadow_row"].some((key) => before[key][i][j] !== state[key][i][j]);
      const from = i ? parts.shadows[i - 1][j].at : parts.edge[0][j].at;
      return { value: state.shadow[i][j], look: "weight waiting", from: came ? from : null };
    });
  };

  const drawArray = (state, duration) => {
    const busy = (i, j, made) => (state.row[i][j] === NONE ? null : made(state.row[i][j]));
    place(parts.ground, 0, (i, j) => busy(i, j, (owner) => ({ value: 0, look: look("ground", owner) })));
    place(parts.x, duration, (i, j) =>
      busy(i, j, (owner) => ({
        value: state.x[i][j],
        look: look("solid", owner),
        from: j ? parts.x[i][j - 1].at : parts.setup[i][0].at,
      })),
    );
    place(parts.sums, duration, (i, j) =>
      busy(i, j, (owner) => ({ value: state.sums[i][j], look: look("pill", owner), from: i ? pillAt(i - 1, j) : null })),
    );
  };

  const drawResults = (state, duration) => {
    place(parts.product, 0, (i, j) => ({ value: data.product[i][j], look: state.summed[i][j] === data.tiles ? "number met" : "number" }));
    place(parts.accumulators, duration, (i, j) => {
      const tiles = state.summed[i][j];
      if (!tiles) return null;
      const from = state.fresh[i][j] ? pillAt(data.rows - 1, j) : null;
      return { value: state.accumulators[i][j], look: look(tiles === data.tiles ? "complete" : "pill", i), from };
    });
    equals.forEach((sign, i) => {
      const met = state.summed[i].every((tiles, j) => tiles === data.tiles && state.accumulators[i][j] === data.product[i][j]);
      sign.setAttribute("visibility", met ? "visible" : "hidden");
    });
  };

  /** Shows a cycle; `duration` is that of the way from the cycle before, in milliseconds; 0 stands for no way. */
  const show = (number, duration) => {
    const state = data.cycles[number];
    drawInput(state, duration);
    drawWeights(state, data.cycles[number - 1], duration);
    drawArray(state, duration);
    drawResults(state, duration);
  };

  /** Words that never change: what stands where, and the numbers of rows. */
  const write = (text, at, anchor, kind = "", size = 12) => {
    element("text", { ...at, "text-anchor": anchor, "font-size": size, class: `caption ${kind}` }, svg).textContent = text;
  };

  write("the input", { x: input.x + input.width, y: array.y - 10 }, "end");
  write("setup", { x: setup.x + setup.width, y: array.y - 10 }, "end");
  write("X @ W by NumPy", { x: product.x + data.columns * product.across - 4, y: product.y - 8 }, "end");
  write("accumulators", { x: array.x, y: accumulators.y - 8 }, "start");
  const size = Math.min(12, product.down * 0.7);
  if (size >= 8) {
    for (let row = 0; row < data.count; row += 1) {
      const at = { x: product.x - 6, y: middle(product, row, 0).y + size * 0.36 };
      write(`row ${row}`, at, "end", `owned row-${row % data.colours}`, size);
    }
  }

  return { show, svg };
})();
