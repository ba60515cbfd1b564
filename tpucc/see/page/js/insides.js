/** What is inside the boxes that stand for several. A picture that opens is named after its box: `graph-3`, and `graph-3-7` in there. */
const insides = (() => {
  const { insides: known } = model;

  const nameOf = ({ diagram, id }) => `${diagram}-${id}`;
  const at = (name) => (Object.hasOwn(known, name) ? known[name] : null);

  /** What a box stands for: {title, size, count, members, opens}, or null when it stands for itself. */
  const of = (chosen) => (chosen?.kind === "box" ? at(nameOf(chosen)) : null);

  /** Whether there is a picture of this name to open. */
  const opens = (name) => at(name)?.opens ?? false;

  /** The name of what a box opens, or an empty text. */
  const behind = (chosen) => (of(chosen)?.opens ? nameOf(chosen) : "");

  /** The diagram that a picture is in at last, which has the tab. */
  const root = (name) => name.split("-", 1)[0];

  /** The picture around one; empty for a diagram. */
  const around = (name) => name.slice(0, Math.max(0, name.lastIndexOf("-")));

  /** The way to a picture: the diagram, and what was opened one in the other, itself last. */
  const trail = (name) => (name ? [...trail(around(name)), name] : []);

  const title = (name) => at(name)?.title ?? name;

  /** A new copy of a picture. */
  const picture = (name) => document.getElementById(`inside-${name}`).content.firstElementChild.cloneNode(true);

  return { of, opens, behind, root, around, trail, title, picture };
})();
