// Turns the slides of a deck: one section is shown, and its number stands in the address.
const sections = [...document.querySelectorAll("section")];
let shown = 0;

// Letters shrink until what a slide shows fits.
function fit(part) {
  part.style.fontSize = "";
  for (let size = 95; size >= 45 && (part.scrollHeight > part.clientHeight || part.scrollWidth > part.clientWidth); size -= 5) {
    part.style.fontSize = `${size}%`;
  }
}

function show(number) {
  shown = Math.max(0, Math.min(sections.length - 1, number));
  sections.forEach((section, at) => section.classList.toggle("now", at === shown));
  history.replaceState(null, "", `#${shown + 1}`);
  fit(sections[shown].querySelector(".shown"));
}

const keys = {
  ArrowRight: () => show(shown + 1), PageDown: () => show(shown + 1), " ": () => show(shown + 1), Enter: () => show(shown + 1),
  ArrowLeft: () => show(shown - 1), PageUp: () => show(shown - 1), Home: () => show(0), End: () => show(sections.length - 1),
  n: () => { document.body.classList.toggle("notes"); show(shown); },
};
addEventListener("keydown", (event) => {
  const turn = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (turn && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    turn();
  }
});
addEventListener("resize", () => show(shown));
addEventListener("beforeprint", () => {
  document.body.classList.add("printed");
  sections.forEach((section) => fit(section.querySelector(".shown")));
});
addEventListener("afterprint", () => document.body.classList.remove("printed"));
show((parseInt(location.hash.slice(1), 10) || 1) - 1);
