/** Messages as boxes. Their texts become text nodes. */

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

/** A diagnostic as a box; its places are buttons that lead there, where there is an editor to lead to. */
export function box(found, place) {
  const way = ({ line, column }) => make("button", { type: "button", onclick: () => place.go(line, column) }, `${found.file}:${line}:${column}`);
  const head = make("p", {}, make("strong", {}, found.severity), ` ${found.code}: ${found.message}`);
  if (found.line !== null && place) head.prepend(way(found), " ");
  else if (found.file) head.prepend(`${found.file}: `);
  const others = (found.spans ?? []).slice(1).filter(({ text }) => text);
  const notes = others.map((other) => make("p", {}, place ? way(other) : `${found.file}:${other.line}`, ` note: ${other.text}`));
  return make("div", { className: `message ${found.severity}` }, head, ...notes, ...found.help.map((help) => make("p", {}, `help: ${help}`)));
}
