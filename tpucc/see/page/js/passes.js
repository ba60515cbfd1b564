/** The graph after each pass that changed it: what went, what came. */
const passes = (() => {
  const AROUND = 2;
  const KEPT = 0;
  const SIGNS = ["", "+", "−"];
  const READABLE = 0.75; // texts of 12 pixels are 9
  const REST = 900; // milliseconds between two rewrites of a film
  const panel = document.getElementById("view-passes");
  const { shown: stages, unchanged } = model.stages;
  const texts = model.stages.texts.split("\n");
  const textOf = decode.deltas(model.stages.text);
  const originOf = decode.deltas(model.stages.origin);
  let whole = () => false;
  let [stage, rewrite] = [0, 0];
  let entries = [];
  let playing = null; // what tells the film that runs from those before it
  let rows = null;

  /** The rows of a stage: {line, kind}, and {gap: how many} for kept lines that are left out. */
  function entriesOf(number) {
    const all = Array.from(decode.deltas(stages[number].rows), (value) => ({ line: Math.floor(value / 3), kind: value % 3 }));
    if (whole() || number === 0) return all;
    const near = new Uint8Array(all.length);
    all.forEach(({ kind }, place) => {
      if (kind !== KEPT) near.fill(1, Math.max(0, place - AROUND), place + AROUND + 1);
    });
    const found = [];
    all.forEach((entry, place) => {
      if (near[place]) found.push(entry);
      else if (found.at(-1)?.gap) found.at(-1).gap++;
      else found.push({ gap: 1 });
    });
    return found;
  }

  function fill(row, index) {
    const { line, kind, gap } = entries[index];
    if (gap) {
      row.className = "row gap";
      row.replaceChildren(list.cell("sign", ""), list.cell("operands", `… ${words.counted(gap, "line")} as before`));
      return;
    }
    row.className = `row ${["kept", "added", "removed"][kind]}`;
    row.classList.toggle("lit", selection.lit()?.origins.has(originOf[line]) ?? false);
    row.replaceChildren(list.cell("sign", SIGNS[kind]), list.cell("operands", texts[textOf[line]]));
  }

  const nodeOf = (event) => {
    const entry = entries[list.rowOf(event)];
    return entry && !entry.gap ? { kind: "origin", id: originOf[entry.line] } : null;
  };

  function button(number) {
    const { name, nodes, added, removed } = stages[number];
    const counts = number ? `+${words.number(added)} −${words.number(removed)}` : words.counted(nodes, "node");
    return dom.make("button", { "data-stage": number, click: () => choose(number) }, list.cell("name", name), list.cell("counts", counts), ...(number === stages.findIndex((each) => each.name === name) ? bar(name) : []));
  }

  /** The program's cycles with this pass and those before it, where they are known, as a bar beside those of other passes. */
  function bar(name) {
    if (!Object.hasOwn(model.steps, name)) return [];
    const [cycles, most] = [model.steps[name], Math.max(...Object.values(model.steps))];
    return [dom.make("span", { class: "after" }, dom.make("i", { style: `width: ${(100 * cycles) / most}%` }), `${dom.number(cycles)} cycles${name === stages[0].name ? " without passes" : ""}`)];
  }

  /** The rewrites of a stage that are drawn, by their numbers on the page. */
  const drawnOf = (number) => model.rewrites.flatMap(({ stage: at }, place) => (at === stages[number].at ? [place] : []));

  const least = (picture) => READABLE * picture.viewBox.baseVal.width;

  /** The graph on one side of a rewrite, with what is around it. A click on a box holds its line. */
  function side(place, name) {
    const waiting = document.getElementById(`rewrite-${place}-${name}`);
    const picture = waiting ? waiting.content.firstElementChild.cloneNode(true) : dom.make("p", { class: "soft" }, name === "after" ? "Nothing is left of it." : "Nothing was there.");
    if (waiting) picture.style.minWidth = `${least(picture)}px`; // its frame scrolls
    const hold = (event) => {
      event.preventDefault();
      const line = /line-(\d+)/.exec(event.target.closest(".box")?.getAttribute("class") ?? "");
      if (line) selection.hold({ kind: "line", id: Number(line[1]) }, "passes");
    };
    return dom.make("figure", {}, dom.make("figcaption", {}, name), dom.make("div", { class: "frame", click: hold, tabindex: "0" }, picture));
  }

  /** Both sides: beside each other where there is room for them to be read, else one below the other. */
  function both(...figures) {
    const pictures = figures.flatMap((figure) => [...figure.querySelectorAll("svg")]);
    return dom.make("div", { class: "sides", style: `--least: ${Math.max(...pictures.map(least))}px` }, ...figures);
  }

  /**
   * Scrolls a frame so that the changed boxes, those without dashes, are in its middle; not at all if they are seen without, or have no room in
   * it: then the picture is read from its beginning.
   */
  function centre(scroller) {
    scroller.scrollTo(0, 0);
    const changed = [...scroller.querySelectorAll(".box:not(:has([stroke-dasharray]))")].map((box) => box.getBoundingClientRect());
    if (!changed.length) return;
    const { left, top } = scroller.getBoundingClientRect();
    const ends = (low, high, begin) => [Math.min(...changed.map((box) => box[low])) - begin, Math.max(...changed.map((box) => box[high])) - begin];
    const needed = ([low, high], room) => (high <= room || high - low > room ? 0 : (low + high - room) / 2);
    scroller.scrollTo(needed(ends("left", "right", left), scroller.clientWidth), needed(ends("top", "bottom", top), scroller.clientHeight));
  }

  const picturesOf = (pane) => [...pane.querySelectorAll("figure")].map((figure) => figure.querySelector("svg"));

  /** The next rewrite that is drawn, here or in a later stage: its stage, and its number there. */
  function next() {
    if (rewrite + 1 < drawnOf(stage).length) return [stage, rewrite + 1];
    const later = stages.findIndex((_, number) => number > stage && drawnOf(number).length);
    return later < 0 ? null : [later, 0];
  }

  /** Plays the rewrites from the one that is shown on, until the last or until it is stopped. */
  async function play() {
    const own = (playing = {});
    for (let at = [stage, rewrite]; at && playing === own; at = next()) {
      choose(...at, own);
      await film.play(picturesOf(panel.querySelector(".rewrite")), model.rewrites[drawnOf(stage)[rewrite]], centre);
      await new Promise((done) => setTimeout(done, REST));
    }
    if (playing === own) choose(stage, rewrite);
  }

  /** Shows one rewrite of the stage, before and after, and the way to the others. */
  function showRewrite(wanted = 0) {
    const drawn = drawnOf(stage);
    const pane = panel.querySelector(".rewrite");
    pane.hidden = !drawn.length;
    const at = drawn.length && (wanted + drawn.length) % drawn.length;
    rewrite = at;
    if (views.current() === "passes") selection.show(address());
    if (!drawn.length) return;
    const { alike, rule, names } = model.rewrites[drawn[at]];
    const likes = alike > 1 ? `, ${words.number(alike)} times alike` : "";
    const turn = (text, label, step) => dom.make("button", { "aria-label": label, title: label, click: () => choose(stage, at + step) }, text);
    const others = drawn.length > 1 ? [turn("‹", "the rewrite before", -1), turn("›", "the next rewrite", 1)] : [];
    const does = playing ? "stop" : "play this rewrite, and those after it";
    const player = dom.make("button", { class: "play", "aria-label": does, title: does, click: () => (playing ? choose(stage, rewrite) : play()) }, playing ? "■" : "▶");
    const turns = [player, ...others];
    const said = `${stages[stage].name}: rewrite ${at + 1} of ${drawn.length} drawn${rule && `, by the rule “${rule}”`}${likes}. What goes and what comes has a thick outline; dashed boxes are around it.`;
    pane.replaceChildren(dom.make("p", {}, dom.make("span", {}, said), dom.make("span", {}, ...turns)), both(side(drawn[at], "before"), side(drawn[at], "after")));
    film.mark(picturesOf(pane).map((picture, which) => (picture ? film.named(picture, names[which]) : new Map())));
    pane.querySelectorAll(".frame").forEach(centre);
  }

  /** Shows a stage and one of its rewrites. That ends a film, unless it is the film's own step. */
  function choose(number, wanted = 0, step = null) {
    playing = step;
    stage = number;
    showRewrite(wanted);
    entries = entriesOf(number);
    for (const element of panel.querySelectorAll("[data-stage]")) element.classList.toggle("chosen", Number(element.dataset.stage) === number);
    const { summary, nodes } = stages[number];
    panel.querySelector(".summary").textContent = `${summary ? `${summary}: ` : ""}${words.counted(nodes, "node")}`;
    panel.querySelector(".lines").scrollTop = 0;
    light(selection.current(), selection.lit(), "");
  }

  function frame() {
    const more = Object.keys(model.steps).length ? "" : "tpucc profile MODEL --by pass says what each gives.";
    const note = dom.make("p", {}, unchanged ? `${words.counted(unchanged, "pass", "passes")} changed nothing. ` : "", ...dom.prose(more));
    const box = dom.make("input", { type: "checkbox", change: () => choose(stage, rewrite) });
    const head = dom.make("p", {}, list.cell("summary", ""), dom.make("label", {}, box, " all lines"));
    const scroll = dom.make("div", { class: "lines", tabindex: 0 });
    whole = () => box.checked;
    panel.replaceChildren(dom.make("div", { class: "stages" }, ...stages.map((_, number) => button(number)), note), dom.make("div", { class: "stage" }, head, dom.make("div", { class: "rewrite", hidden: "" }), scroll));
    return scroll;
  }

  /** Lights the lines that belong to the selection, and brings the first of them into sight if it is held. */
  function light(chosen, lit, from) {
    if (views.current() !== "passes") return;
    const first = lit && from !== "passes" && selection.held() ? entries.findIndex(({ line }) => lit.origins.has(originOf[line])) : -1;
    if (first >= 0) rows.reveal(first);
    else rows.draw();
  }

  function start() {
    if (!panel) return;
    const scroll = frame();
    rows = list.open(scroll, () => entries.length, fill);
    selection.follow(scroll, "passes", nodeOf);
    selection.listen(light);
    choose(0);
  }

  /** Shows what an address names; what isn't there is left out. */
  function go(name) {
    const [number, wanted] = name.split("-").slice(1).map(Number);
    const found = Object.hasOwn(stages, number) ? number : 0;
    if (found !== stage || (wanted ?? 0) !== rewrite) choose(found, drawnOf(found)[wanted] === undefined ? 0 : wanted);
  }

  /** Shows what an address names, and draws what waits for the view to be shown: the rows, and where the pictures are scrolled to. */
  function shown(wanted) {
    if (!rows) return;
    go(wanted);
    light(selection.current(), selection.lit(), "");
    panel.querySelectorAll(".rewrite .frame").forEach(centre);
  }

  /** The name of what is shown, for the page's address: the stage by its number, and the rewrite if it isn't the first. */
  const address = () => ["passes", ...(stage ? [stage, ...(rewrite ? [rewrite] : [])] : [])].join("-");

  /** Goes to the stage `step` further on. */
  const move = (step) => panel && choose(Math.min(stages.length - 1, Math.max(0, stage + step)));

  return { start, move, shown, address };
})();
