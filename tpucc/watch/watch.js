"use strict";

/**
 * What `tpucc watch` adds to a page that it serves: the page loads itself again when the server has another one in its place, and says
 * in a corner what it can't show. The address's fragment, where the report keeps its selection, stays. The page with the editor, whose frame
 * it is in, hears the state from it.
 *
 * @typedef {{pages: Object<string, string>, errors: number, warnings: number, compiling: boolean}} State
 */
(() => {
  const { place, digest } = document.currentScript.dataset;
  const framed = window.parent !== window;
  const stale = document.getElementById("tpucc-errors");
  const bar = document.createElement("aside");
  bar.className = "tpucc-watch";
  bar.setAttribute("role", "status");
  bar.hidden = true;
  document.body.append(bar);

  /** @type {EventSource | null} */
  let events = null;

  /** Shows a sentence in the corner, with a link when there is somewhere to go; an empty one hides the corner. */
  function say(words, address = "", label = "") {
    bar.replaceChildren(words);
    bar.hidden = words === "";
    if (address === "") return;
    const link = document.createElement("a");
    link.href = address;
    link.dataset.keepHash = "";
    link.textContent = label;
    bar.append(link);
  }

  /** `1 error`, `2 errors`. */
  function counted(number, word) {
    return `${number} ${word}${number === 1 ? "" : "s"}`;
  }

  /** @param {State} state */
  function hear(state) {
    if (framed) window.parent.postMessage(state, location.origin);
    const now = state.pages[place];
    const outdated = state.errors > 0 && place === "/report.html";
    if (now !== undefined && now !== digest) location.reload();
    else if (state.compiling) say("compiling …");
    else if (stale) say(`${counted(state.errors, "error")}; the report is that of the last version that compiled`, "/messages", "see them alone");
    else if (outdated) say(`${counted(state.errors, "error")} in the source as it is now`, "/view", "see them");
    else if (state.warnings > 0 && place !== "/messages") say(counted(state.warnings, "warning"), "/messages", "see them");
    else say("");
  }

  /** Listens while the page can be seen: a hidden one would keep one of the few connections that a browser makes to a server. */
  function listen() {
    events?.close();
    events = null;
    if (document.hidden) return;
    events = new EventSource("/events");
    events.addEventListener("state", (event) => hear(JSON.parse(event.data)));
    events.addEventListener("error", () => say("tpucc watch can't be reached: this page doesn't follow the source"));
  }

  /** Puts the errors, at their lines of the source as it is now, in place of the source of a report that is no longer of it. */
  function showErrors() {
    const pane = document.createElement("section");
    pane.className = "tpucc-errors";
    pane.setAttribute("aria-label", "source with errors");
    pane.tabIndex = 0;
    pane.append(stale.content.cloneNode(true));
    const source = document.getElementById("source");
    if (source) source.hidden = true;
    if (source) source.before(pane);
    else document.body.prepend(pane);
    document.documentElement.classList.add("tpucc-stale");
    const first = pane.querySelector("mark");
    if (first) pane.scrollTop = first.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
  }

  /** Brings the first message of the page of messages into view, wherever the page stood before. */
  function showFirst() {
    const first = document.querySelector("main[data-messages] mark");
    if (!first) return;
    history.scrollRestoration = "manual";
    first.scrollIntoView({ block: "center" });
  }

  /** Links between the views of one model take the selection along. */
  function keepHash(event) {
    const link = event.target instanceof Element ? event.target.closest("a[data-keep-hash]") : null;
    if (link) link.hash = location.hash;
  }

  document.addEventListener("click", keepHash);
  document.addEventListener("visibilitychange", listen);
  document.documentElement.classList.toggle("tpucc-framed", framed);
  showFirst();
  if (stale) showErrors();
  listen();
})();
