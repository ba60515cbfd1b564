/** Texts of the lab as elements. */
import { make } from "./boxes.js";

/** A text in which backticks hold code, and two asterisks hold a term. @param {string} text */
const marked = (text) =>
  text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) return make("code", {}, part.slice(1, -1));
    return part.startsWith("**") ? make("strong", {}, part.slice(2, -2)) : part;
  });

const paragraph = (text) => make("p", {}, ...marked(text));

/** @param {string[][]} rows the first has the heads */
function table([heads, ...rows]) {
  const row = (cells, tag) => make("tr", {}, ...cells.map((text) => make(tag, {}, ...marked(text))));
  return make("table", {}, make("thead", {}, row(heads, "th")), make("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
}

/** Paragraphs and tables, under a line that opens them. @param {string} title @param {(string | string[][])[]} parts */
export const handout = (title, parts) =>
  make("details", {}, make("summary", {}, title), ...parts.map((part) => (Array.isArray(part) ? table(part) : paragraph(part))));

/** A puzzle's task: paragraphs, and the memories in lines. */
export const task = ({ task: [title, ...rest], memories }) => [make("h2", {}, title), ...rest.map(paragraph), make("pre", {}, memories)];
