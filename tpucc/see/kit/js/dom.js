/** Making elements, writing numbers in them, and dragging in them. */
const dom = (() => {
  /** Attributes, of which a function listens to the event of its name, and children: elements, and texts that stay text. */
  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const make = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
  const svg = (name, attributes = {}, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

  /** Gives an element a text, unless it has it: what is written anew is laid out anew. */
  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  /** A text in which options and files of commands, such as `--values` and `digits.tpu`, go to the next line whole. */
  const prose = (text) => text.split(/((?<=\s)--?\w\S*|\S+\.(?:tpu|onnx)(?=\s))/).map((part, index) => (index % 2 ? make("span", { class: "word" }, part) : part));

  const integers = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 }); // made once: `toLocaleString` takes ten times as long

  /** The nearest whole number, with separators. */
  const number = (value) => integers.format(Math.round(value));

  /**
   * Calls `move(start, dx, dy)` while `element` is dragged by so many pixels, where `start` is what `begin()` gave as the drag began. Returns
   * a function that says whether that is what the pointer did last: a drag is no click.
   */
  function drag(element, begin, move) {
    let from = null;
    element.addEventListener("pointerdown", (event) => {
      if (event.button === 0) from = { x: event.clientX, y: event.clientY, start: begin(), far: false };
    });
    window.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      from.far ||= Math.hypot(dx, dy) > 4;
      if (from.far) move(from.start, dx, dy);
    });
    window.addEventListener("pointerup", () => setTimeout(() => (from = null)));
    return () => from?.far ?? false;
  }

  return { make, svg, write, prose, number, drag };
})();
