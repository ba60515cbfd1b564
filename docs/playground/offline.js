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
