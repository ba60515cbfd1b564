/** A rewrite as a film: what goes slides into what comes, and what stays keeps its place or slides to its new one. */
const film = (() => {
  const WAIT = 600; // milliseconds in which the picture before it stands
  const SLIDE = 1200;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const isAround = (box) => box.querySelector("[stroke-dasharray]") !== null;

  /** The boxes of a picture by their names, the first of each. */
  function named(picture, names) {
    const boxes = [...picture.querySelectorAll(".box")].map((box) => [names[Number(/\d+$/.exec(box.id))], box]);
    return new Map(boxes.reverse());
  }

  /** Marks the boxes of each side that aren't on the other with the same words. */
  function mark(sides) {
    for (const [own, other] of [sides, [...sides].reverse()]) {
      for (const [name, box] of own) {
        const words = (one) => [...one.querySelectorAll("text")].map((text) => text.textContent).join("\n");
        box.classList.toggle("changes", !isAround(box) && (!other.has(name) || words(other.get(name)) !== words(box)));
      }
    }
  }

  /** Where a box's middle is in its picture, in the picture's own pixels. */
  function middle(box, picture) {
    const [own, all] = [box.getBoundingClientRect(), picture.getBoundingClientRect()];
    const scale = picture.viewBox.baseVal.width / all.width;
    return [scale * (own.left + own.width / 2 - all.left), scale * (own.top + own.height / 2 - all.top)];
  }

  const minus = ([x, y], [u, v]) => [x - u, y - v];
  const at = ([x, y]) => `translate(${x}px, ${y}px)`;

  /** Plays a rewrite in the frame of the picture after it, which has the room of both. The promise holds when all stands. */
  async function play(sides, { names, small: marked }, centre) {
    const [before, after] = sides;
    if (still.matches || !before || !after) return;
    const [old, young] = sides.map((picture, side) => named(picture, names[side]));
    const small = new Set(marked);
    const was = new Map([...old].map(([name, box]) => [name, middle(box, before)]));
    after.closest(".sides").classList.add("filming");
    centre(after.closest(".frame"));
    const stays = [...young].filter(([name]) => old.has(name)).map(([name, box]) => minus(was.get(name), middle(box, after)));
    const mean = (axis) => stays.reduce((sum, way) => sum + way[axis], 0) / (stays.length || 1);
    const from = (name) => minus(was.get(name), [mean(0), mean(1)]); // so that what stays hardly moves
    const comes = [...young].filter(([, box]) => box.classList.contains("changes"));
    const goal = (name) => (young.get(name) ?? comes.find(([other]) => small.has(other) === small.has(name))?.[1] ?? comes[0]?.[1]);
    const body = after.querySelector(".box").parentNode;
    const options = { delay: WAIT, duration: SLIDE, easing: "ease-in-out", fill: "both" };
    const late = [{ opacity: 0 }, { opacity: 0, offset: 0.7 }, { opacity: 1 }];
    const lines = (all) => [...all.children].filter((each) => !each.matches(".box"));
    const running = [...lines(body), ...comes.map(([, box]) => box)].map((each) => each.animate(late, options));
    const ghosts = before.querySelector(".box").parentNode.cloneNode(true);
    for (const line of lines(ghosts)) running.push(line.animate([{ opacity: 1 }, { opacity: 0, offset: 0.3 }, { opacity: 0 }], options));
    for (const [name, ghost] of named(ghosts, names[0])) {
      const [here, changes] = [from(name), old.get(name).classList.contains("changes")];
      if (changes) {
        const to = goal(name) ? at(minus(middle(goal(name), after), here)) : "none";
        running.push(ghost.animate([{ transform: "none" }, { transform: to, opacity: 1, offset: 0.7 }, { transform: to, opacity: 0 }], options));
      } else if (young.has(name)) {
        ghost.remove();
        running.push(young.get(name).animate({ transform: [at(minus(here, middle(young.get(name), after))), "none"] }, options));
      }
    }
    const place = dom.svg("g", { "aria-hidden": "true", style: `transform: ${at([-mean(0), -mean(1)])}` }, ghosts);
    for (const each of place.querySelectorAll("[id]")) each.removeAttribute("id");
    after.append(place);
    await Promise.allSettled(running.map((each) => each.finished));
  }

  return { mark, named, play };
})();
