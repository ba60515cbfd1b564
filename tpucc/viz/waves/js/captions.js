/** Words in the picture that never change: what stands where, and the numbers of rows and columns. */
(() => {
  const { element, middle } = boxes;
  const { array, setup, input, product, accumulators } = data.geometry;

  const write = (text, x, y, anchor, size = 12) => {
    element("text", { x, y, "text-anchor": anchor, "font-size": size, class: "caption" }, scene.svg).textContent = text;
  };

  write("the input", input.x + input.width, array.y - 10, "end");
  write("setup", setup.x + setup.width, array.y - 10, "end");
  write("X @ W by NumPy", product.x + data.columns * product.across - 4, product.y - 8, "end");
  write("accumulators", array.x, accumulators.y - 8, "start");
  const size = Math.min(12, product.down * 0.7);
  if (size >= 8) {
    for (let row = 0; row < data.count; row += 1) write(`row ${row}`, product.x - 6, middle(product, row, 0).y + size * 0.36, "end", size);
  }
})();
