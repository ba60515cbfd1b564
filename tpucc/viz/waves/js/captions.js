/** Words in the picture that never change: what stands where, and the numbers of rows and columns. */
(() => {
  const { element, middle } = boxes;
  const { array, setup, input, product, accumulators } = data.geometry;

  const write = (text, x, y, anchor) => {
    element("text", { x, y, "text-anchor": anchor, class: "caption" }, scene.svg).textContent = text;
  };

  write("the input", input.x + input.width, array.y - 10, "end");
  write("setup", setup.x + setup.width, array.y - 10, "end");
  write("X @ W by NumPy", product.x + data.columns * product.across - 4, product.y - 8, "end");
  write("accumulators", array.x, accumulators.y - 8, "start");
  if (product.down >= 12) {
    for (let row = 0; row < data.count; row += 1) write(`row ${row}`, product.x - 6, middle(product, row, 0).y + 4, "end");
  }
})();
