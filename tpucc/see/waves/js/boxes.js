/** Rectangles with a number in them, in the picture's SVG. */
const boxes = (() => {
  /** A new SVG element, such as a "rect"; `inside` is where to put it. */
  const element = (kind, attributes, inside) => inside.appendChild(dom.svg(kind, attributes));

  /** A new paragraph of this class. */
  const paragraph = (text, look) => dom.make("p", { class: look }, text);

  /** A number with a true minus sign. */
  const signed = (value) => String(value).replace("-", "−");

  /** The corner of box (i, j) of a lattice: {x, y, across, down, width, height}. */
  const corner = (lattice, i, j) => ({ x: lattice.x + j * lattice.across, y: lattice.y + i * lattice.down });

  /** The middle of that box. */
  const middle = (lattice, i, j) => {
    const { x, y } = corner(lattice, i, j);
    return { x: x + lattice.width / 2, y: y + lattice.height / 2 };
  };

  /** A box that comes and goes. */
  class Box {
    /** `at` is its middle, `size` {width, height, font, radius}; without a font it has no number. */
    constructor(layer, at, size) {
      this.at = at;
      this.node = element("g", { class: "box" }, layer);
      const place = { x: at.x - size.width / 2, y: at.y - size.height / 2, width: size.width, height: size.height };
      element("rect", { ...place, rx: Math.min(size.radius ?? 5, size.height / 4) }, this.node);
      if (size.font) {
        this.text = element("text", { x: at.x, y: at.y + size.font * 0.36, "font-size": size.font, "text-anchor": "middle" }, this.node);
      }
      this.hide();
    }

    hide() {
      this.node.setAttribute("visibility", "hidden");
    }

    /** `look` are classes. */
    show(value, look) {
      this.node.setAttribute("class", `box ${look}`);
      this.node.setAttribute("visibility", "visible");
      if (this.text) this.text.textContent = signed(value);
    }

    /** Comes from another place; `duration` is in milliseconds, 0 stands for being there. */
    slide(from, duration) {
      if (!duration) return;
      const start = `translate(${from.x - this.at.x}px, ${from.y - this.at.y}px)`;
      this.node.animate([{ transform: start }, { transform: "none" }], { duration, easing: "ease-in-out" });
    }
  }

  return { element, paragraph, signed, corner, middle, Box };
})();
