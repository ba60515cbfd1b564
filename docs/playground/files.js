/** The files that the page is made of. */
import { notice } from "./saying.js";

/** What a file of the page says. Where it can't be had the page can't begin, and says so. */
export async function read(address) {
  const answer = await fetch(address).catch(() => ({ status: "no answer" }));
  const found = answer.ok ? await answer.json().catch(() => null) : null;
  if (found !== null) return found;
  notice(`This page can't begin, as it lacks ${address} (${answer.ok ? "what answers is another file" : answer.status}). Reload it, or try again later.`);
  throw new Error(address);
}
