/** Rectangles with a number in them, in the picture's SVG. */
const boxes = (() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";

  /**
   * A new SVG element.
   * @param {string} kind - such as "rect"
   * @param {Record<string, string | number>} attributes
   * @param {Element} [inside] - where to put it
   * @returns {SVGElement}
   */
  const element = (kind, attributes, inside) => {
    const made = document.createElementNS(NAMESPACE, kind);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    if (inside) inside.append(made);
    return made;
  };

  /**
   * A number with a true minus sign.
   * @param {number} value
   * @returns {string}
   */
  const signed = (value) => String(value).replace("-", "−");

  /**
   * The corner of box (i, j) of a lattice.
   * @param {{x: number, y: number, across: number, down: number}} lattice
   * @param {number} i
   * @param {number} j
   * @returns {{x: number, y: number}}
   */
  const corner = (lattice, i, j) => ({ x: lattice.x + j * lattice.across, y: lattice.y + i * lattice.down });

  /**
   * The middle of box (i, j) of a lattice.
   * @param {{x: number, y: number, across: number, down: number, width: number, height: number}} lattice
   * @param {number} i
   * @param {number} j
   * @returns {{x: number, y: number}}
   */
  const middle = (lattice, i, j) => {
    const { x, y } = corner(lattice, i, j);
    return { x: x + lattice.width / 2, y: y + lattice.height / 2 };
  };

  /** A box that comes and goes. */
  class Box {
    /**
     * @param {Element} layer
     * @param {{x: number, y: number}} at - its middle
     * @param {{width: number, height: number, font: number, radius?: number}} size - without a font it has no number
     */
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

    /**
     * @param {number} value
     * @param {string} look - classes
     */
    show(value, look) {
      this.node.setAttribute("class", `box ${look}`);
      this.node.setAttribute("visibility", "visible");
      if (this.text) this.text.textContent = signed(value);
    }

    /**
     * Comes from another place.
     * @param {{x: number, y: number}} from
     * @param {number} duration - in milliseconds; 0 stands for being there
     */
    slide(from, duration) {
      if (!duration) return;
      const start = `translate(${from.x - this.at.x}px, ${from.y - this.at.y}px)`;
      this.node.animate([{ transform: start }, { transform: "none" }], { duration, easing: "ease-in-out" });
    }
  }

  return { element, signed, corner, middle, Box };
})();
