/** What Python measured: sizes, places, matrices, and the registers in each cycle; see `page.py`. */
const data = JSON.parse(document.getElementById("data").textContent);

/** Stands for no row and no tile. */
const NONE = -1;
