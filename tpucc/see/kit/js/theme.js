/** Light or dark: the button, and who hears of it. The choice holds as long as the page does. */
const theme = (() => {
  const listeners = [];

  /** The other theme. */
  function turn() {
    const root = document.documentElement;
    const dark = (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    for (const listener of listeners) listener();
  }

  document.getElementById("theme").addEventListener("click", turn);
  return { turn, listen: (listener) => listeners.push(listener) };
})();
