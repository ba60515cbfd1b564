/** Diagrams that came as SVG: their boxes light up, and can be pointed at, held and, if they stand for several, opened. */
const diagrams = (() => {
  const places = new Map();

  /** The place of one diagram: its frame with the picture in it, and the way to that picture above. */
  class Place {
    constructor(name) {
      this.name = this.shown = name;
      this.frame = document.querySelector(`#view-${name} .picture`);
      this.pictures = new Map([[name, this.frame.querySelector("svg")]]);
      this.scrolled = new Map();
      this.crumbs = dom.make("div", { class: "crumbs", hidden: "", role: "navigation", "aria-label": "where this is" });
      this.frame.before(this.crumbs);
      this.zoom = zooming.zoomable(this.frame, () => this.svg);
      marked(this.svg, name);
    }

    /** The picture that is shown, made when it is opened for the first time. */
    get svg() {
      if (!this.pictures.has(this.shown)) this.pictures.set(this.shown, marked(insides.picture(this.shown), this.shown));
      return this.pictures.get(this.shown);
    }

    /** The box under an event. */
    boxOf(event) {
      const box = event.target.closest(`[id^="${this.shown}-b"]`);
      return box ? { kind: "box", diagram: this.shown, id: Number(box.id.slice(this.shown.length + 2)) } : null;
    }

    /** Puts another picture into the frame, with the keyboard's focus if it was there, and scrolled as it was left. */
    show(name) {
      if (name === this.shown || (name !== this.name && !insides.opens(name))) return;
      const [left, focused] = [this.shown, this.frame.contains(document.activeElement)];
      this.scrolled.set(left, [this.frame.scrollLeft, this.frame.scrollTop]);
      this.shown = name;
      this.frame.replaceChildren(this.svg);
      this.crumbs.hidden = name === this.name;
      this.crumbs.replaceChildren(...way(name));
      this.begin();
      this.frame.scrollTo(...(this.scrolled.get(name) ?? [0, 0]));
      if (focused) this.focus(left);
      this.light(selection.current(), selection.lit());
    }

    /** Of a picture that is shown now: it fits, unless it was zoomed. */
    begin() {
      this.zoom.settle();
    }

    /** Focuses the box that one came out of, or the frame. */
    focus(left) {
      const box = insides.around(left) === this.shown ? document.getElementById(`${this.shown}-b${left.slice(left.lastIndexOf("-") + 1)}`) : null;
      (box ? focusable(box) : this.frame).focus({ preventScroll: true });
    }

    light(chosen, lit) {
      this.svg.classList.toggle("some", lit !== null && !lit.idle);
      model.diagrams[this.shown].forEach((_, id) => {
        const box = document.getElementById(`${this.shown}-b${id}`);
        if (!box) return;
        const own = { kind: "box", diagram: this.shown, id };
        box.classList.toggle("lit", lit !== null && links.isLit(own, lit));
        box.classList.toggle("held", selection.same(chosen, own));
      });
    }

    listen() {
      const { frame, name } = this;
      const dragged = zooming.draggable(frame);
      selection.follow(frame, name, (event) => this.boxOf(event), (wanted, event) => {
        event.preventDefault();
        if (!dragged()) selection.hold(wanted, name);
      });
      frame.addEventListener("dblclick", (event) => open(this.boxOf(event)));
      frame.addEventListener("keydown", (event) => this.press(event));
    }

    /** On a box that has the keyboard's focus the space bar holds it, and Enter opens it; a box that doesn't open is a link, and held. */
    press(event) {
      const box = this.boxOf(event);
      if (!box || !(event.key === " " || (event.key === "Enter" && insides.behind(box)))) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === " ") selection.hold(box, this.name);
      else open(box);
    }
  }

  const focusable = (box) => box.querySelector("a") ?? box;

  /** A picture whose boxes say which of them open, and can be reached by the keyboard. */
  function marked(svg, name) {
    for (const box of svg.querySelectorAll(`[id^="${name}-b"]`)) {
      const chosen = { kind: "box", diagram: name, id: Number(box.id.slice(name.length + 2)) };
      if (!insides.behind(chosen)) continue;
      box.classList.add("opens");
      box.querySelector("title").textContent += "\ndouble click or Enter: open";
      focusable(box).setAttribute("tabindex", "0");
    }
    return svg;
  }

  /** The way to a picture: a button for each one around it. */
  function way(name) {
    return insides.trail(name).map((step) => {
      if (step === name) return dom.make("span", { "aria-current": "location" }, insides.title(step));
      return dom.make("button", { click: () => views.show(step, false) }, insides.title(step));
    });
  }

  /** Opens a box that stands for several, in its tab, and lets go of it: all that is inside would be lit. */
  function open(chosen) {
    const name = insides.behind(chosen);
    if (!name) return;
    if (selection.same(selection.held(), chosen)) selection.hold(null, "open");
    views.show(name, false);
  }

  /** Goes out of what is open in a diagram, a step. Nothing happens in the diagram itself. */
  function leave(name) {
    const outer = insides.around(places.get(name)?.shown ?? "");
    if (outer) views.show(outer, false);
  }

  /** Brings the first box that is lit to where it can be seen. */
  function reveal(name) {
    document.querySelector(`#view-${name} .lit`)?.scrollIntoView({ block: "center", inline: "center" });
  }

  function place(name) {
    const made = new Place(name);
    made.listen();
    places.set(name, made);
    selection.listen((chosen, lit, from) => {
      made.light(chosen, lit);
      if (lit && from !== name && selection.held() && insides.root(views.current()) === name) reveal(name);
    });
  }

  return {
    start: () => Object.keys(model.diagrams).filter((name) => insides.root(name) === name).forEach(place),
    zoom: (name) => places.get(name)?.zoom,
    /** What is shown in the tab `name`: the name itself, but for a diagram in which something is open. */
    shown: (name) => places.get(name)?.shown ?? name,
    show: (name) => places.get(insides.root(name))?.show(name),
    begin: (name) => places.get(name)?.begin(),
    open,
    leave,
    reveal,
  };
})();
