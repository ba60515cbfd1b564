/** Messages as boxes. Their texts become text nodes. */

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

/** A diagnostic as a box; its place is a button that leads there, where there is an editor to lead to. */
export function box(found, place) {
  const head = make("p", {}, make("strong", {}, found.severity), ` ${found.code}: ${found.message}`);
  if (found.line !== null && place) {
    const go = () => place.go(found.line, found.column);
    head.prepend(make("button", { type: "button", onclick: go }, `${found.file}:${found.line}:${found.column}`), " ");
  } else if (found.file) head.prepend(`${found.file}: `);
  return make("div", { className: `message ${found.severity}` }, head, ...found.help.map((help) => make("p", {}, `help: ${help}`)));
}
