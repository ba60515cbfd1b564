/** Has the service worker keep what is loaded, from the first file of Pyodide on: so this comes first. */
export async function kept(config) {
  if (config.engine === "local" || !("serviceWorker" in navigator)) return;
  const soon = new Promise((resolve) => setTimeout(resolve, 3000));
  const control = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  try {
    await navigator.serviceWorker.register("service.js");
    if (!navigator.serviceWorker.controller) await Promise.race([control, soon]);
  } catch {
    // Without one the page works, and loads everything anew at each visit.
  }
}

/** Throws away what the service worker has kept: something of it can't be used, and is fetched anew with the next load. */
export async function forgetFiles() {
  const names = (await globalThis.caches?.keys().catch(() => [])) ?? [];
  await Promise.all(names.filter((name) => name.startsWith("tpucc-")).map((name) => caches.delete(name)));
}
