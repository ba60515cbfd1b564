/** The service worker: keeps all that the page has loaded, so that the second visit begins at once, without a network, too. */

const BUILD = "$build";
const PYODIDE = "$pyodide";
const FIRST = JSON.parse('$first');

const ours = (url) => url.startsWith(globalThis.registration.scope) || (PYODIDE !== "" && url.startsWith(PYODIDE));

/** What is kept, or else what is fetched and then kept. The name of the cache is the build's, so nothing in it is ever out of date. */
async function answer(request) {
  const cache = await caches.open(BUILD);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept) return kept;
  const fetched = await fetch(request);
  if (fetched.ok) await cache.put(request, fetched.clone());
  return fetched;
}

/** What the first visit has loaded before there was a service worker. */
async function begin() {
  const cache = await caches.open(BUILD);
  await cache.addAll(FIRST);
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
