/** Words in the picture that never change: what stands where, and the numbers of rows and columns. */
(() => {
  const { element, middle } = boxes;
  const { array, setup, input, product, accumulators } = data.geometry;

  const write = (text, at, anchor, look = "", size = 12) => {
    element("text", { ...at, "text-anchor": anchor, "font-size": size, class: `caption ${look}` }, scene.svg).textContent = text;
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
})();
