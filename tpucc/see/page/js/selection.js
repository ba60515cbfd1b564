/** The one selection of the page. What the pointer is on shows as long as nothing is held; the address bar keeps what is held. */
const selection = (() => {
  const OFTEN = 250; // milliseconds between two addresses of steps that follow each other: browsers refuse more than some twenty a second
  const listeners = [];
  let [since, late] = [-OFTEN, 0];
  let held = null;
  let under = null;
  let lit = null;
  let view = "";

  /** What lights up; `idle` if that is nothing, as with a comment: then the rest doesn't recede. */
  function resolved(wanted) {
    const found = links.resolve(wanted);
    return { ...found, idle: found.origins.size === 0 && found.layers.size === 0 && !found.instructions.includes(1) };
  }

  const same = (a, b) => a === b || (a && b && ["kind", "id", "place", "diagram"].every((part) => a[part] === b[part]));
  const current = () => held ?? under;

  function tell(source) {
    lit = current() ? resolved(current()) : null;
    for (const listener of listeners) listener(current(), lit, source);
  }

  /** Holds `wanted`, which `source` (a view) asked for; null lets go. All views hear of it: what the pointer was on may now be held. */
  function hold(wanted, source = "") {
    held = wanted && links.exists(wanted) ? wanted : null;
    under = null;
    if (source === "machine" && performance.now() - since < OFTEN) late ||= setTimeout(remember, OFTEN);
    else remember();
    tell(source);
  }

  /** Shows what the pointer is on. */
  function point(wanted, source = "") {
    const before = current();
    under = wanted && links.exists(wanted) ? wanted : null;
    if (!same(before, current())) tell(source);
  }

  /** Makes places in `panel` selectable: `find(event)` gives the selection to point at, and a click holds it, or does what `click` says. */
  function follow(panel, source, find, click = (wanted) => wanted && hold(wanted, source)) {
    for (const move of ["mouseover", "mousemove"]) panel.addEventListener(move, (event) => point(find(event), source));
    panel.addEventListener("mouseleave", () => point(null, source));
    panel.addEventListener("click", (event) => click(find(event), event));
  }

  /** The selection and the view as the page's address says them: `#view=tiles&tile=2.5`. */
  function written() {
    const words = view ? [`view=${view}`] : [];
    if (held) words.push(`${held.kind}=${[held.diagram, held.id, held.place].filter((part) => part !== undefined).join(".")}`);
    return words.join("&");
  }

  function remember() {
    clearTimeout(late);
    [since, late] = [performance.now(), 0];
    const hash = written();
    if (location.hash.slice(1) === hash) return;
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.href.split("#")[0]);
    } catch {
      // A page inside another one may not change its address; it works all the same.
    }
  }

  /** A number as `written` writes it; NaN for any other text. */
  const number = (text) => (/^\d{1,9}$/.test(text) ? Number(text) : NaN);

  /** A word of an address as a selection, of which there may be no such thing. */
  function read([kind, value]) {
    const parts = value.split(".");
    if (kind === "box") return { kind, diagram: parts[0], id: number(parts[1]) };
    return kind === "tile" ? { kind, id: number(parts[0]), place: number(parts[1]) } : { kind, id: number(value) };
  }

  /** The view and the selection that the address asks for: of what is in it, the first that is on this page. */
  function restored() {
    const words = new URLSearchParams(location.hash.slice(1));
    return { view: words.get("view") ?? "", wanted: [...words].map(read).find(links.exists) ?? null };
  }

  function show(name) {
    view = name;
    remember();
  }

  const listen = (listener) => listeners.push(listener);
  return { hold, point, follow, show, restored, current, same, held: () => held, lit: () => lit, listen };
})();
