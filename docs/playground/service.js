/** The service worker: keeps all that the page has loaded, so that the second visit begins at once, without a network, too. */

const BUILD = "$build";
const PYODIDE = "$pyodide";
const FIRST = JSON.parse('$first');
const DIGESTS = JSON.parse('$digests'); // the SHA-256 of each file of the page

const ours = (url) => url.startsWith(globalThis.registration.scope) || (PYODIDE !== "" && url.startsWith(PYODIDE));

/** Whether an answer is the page's own file, and not what a network puts in its place. What has no digest may be anything. */
async function genuine(request, found) {
  const path = request.url.split(/[?#]/, 1)[0].slice(globalThis.registration.scope.length) || "index.html";
  const wanted = request.url.startsWith(globalThis.registration.scope) && DIGESTS[path];
  if (!wanted) return true;
  const octets = new Uint8Array(await crypto.subtle.digest("SHA-256", await found.clone().arrayBuffer()));
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, "0")).join("") === wanted;
}

/** What the network has, asked once more past the browser's own cache if it is another file. It is kept if it is the right one. */
async function fetched(cache, request) {
  for (const how of [{}, { cache: "reload" }]) {
    const found = await fetch(request, how);
    if (!found.ok) return found;
    if (await genuine(request, found)) {
      await cache.put(request, found.clone());
      return found;
    }
    if (request.mode === "navigate") return found; // a host may add to pages
  }
  return new Response("", { status: 502, statusText: "not the file that belongs there" });
}

/** What is kept, or else what is fetched. The name of the cache is the build's, so nothing in it is ever out of date. */
async function answer(request) {
  const cache = await caches.open(BUILD);
  return (await cache.match(request, { ignoreSearch: true })) ?? fetched(cache, request);
}

/** What the first visit has loaded before there was a service worker. */
async function begin() {
  const cache = await caches.open(BUILD);
  const answers = await Promise.all(FIRST.map((path) => fetched(cache, new Request(path))));
  if (!answers.every(({ ok }) => ok)) throw new Error("a file of the page can't be had");
}

async function tidy() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith("tpucc-") && name !== BUILD);
  await Promise.all(old.map((name) => caches.delete(name)));
  await globalThis.clients.claim();
}

addEventListener("install", (event) => event.waitUntil(begin()));
addEventListener("activate", (event) => event.waitUntil(tidy()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && ours(event.request.url)) event.respondWith(answer(event.request));
});
