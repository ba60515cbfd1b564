/** The page of a sweep: the table of points, which is sorted and searched, and the point that is chosen, with its command. */
(() => {
  const PAGE = 100;
  const { columns, heads, times, of_a_second, shared, texts, shown, rows } = JSON.parse(document.getElementById("data").textContent);
  const chosen = document.getElementById("chosen");
  const body = document.querySelector("#rows table");
  const find = document.getElementById("find");
  const count = document.getElementById("count");
  const steps = { earlier: document.getElementById("earlier"), later: document.getElementById("later") };
  const command = columns.indexOf("command");
  let order = rows.map((_, point) => point);
  let sorted = { column: -1, down: false };
  let start = 0;

  const valueOf = (point, column) => {
    const value = rows[point][column];
    return shared.includes(column) && value !== null ? texts[value] : value;
  };
  const textOf = (point, column) => {
    const value = valueOf(point, column);
    if (value === null) return "";
    if (times.includes(column)) return (value * of_a_second).toLocaleString("en", { maximumSignificantDigits: 6 });
    if (typeof value !== "number") return value;
    if (Number.isInteger(value)) return value.toLocaleString("en");
    if (Math.abs(value) >= 1e6) return value.toLocaleString("en", { maximumFractionDigits: 3 });
    const tiny = value !== 0 && Math.abs(value) < 1e-3;
    return tiny ? Number(value.toPrecision(6)).toExponential() : value.toLocaleString("en", { maximumSignificantDigits: 6 });
  };

  /** The attributes of a column's cells: names and sentences stand on the left. */
  const looks = (column) => (shared.includes(column) ? { class: "text" } : {});

  /** The point that the address names; -1 for none. */
  function named() {
    const found = /^#point=(\d+)$/.exec(location.hash);
    return found && Number(found[1]) < rows.length ? Number(found[1]) : -1;
  }

  async function copy(button, text) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling); // where pages may not write it, Ctrl-C does
      button.textContent = "press Ctrl-C";
    }
  }

  function showChosen(scroll) {
    const point = named();
    for (const mark of document.querySelectorAll("[data-point]")) mark.classList.toggle("chosen", Number(mark.dataset.point) === point);
    for (const row of body.querySelectorAll("tr[id]")) row.classList.toggle("here", row.id === `row-${point}`);
    if (point < 0) return;
    const line = dom.make("div", { class: "command" });
    const button = dom.make("button", { type: "button" }, "copy");
    button.addEventListener("click", () => copy(button, rows[point][command]));
    line.append(dom.make("code", {}, rows[point][command]), button);
    const facts = dom.make("dl");
    columns.forEach((name, column) => {
      if (column === command || textOf(point, column) === "") return;
      const wide = name.endsWith("explanation") || name === "reason";
      const fact = dom.make("div", wide ? { class: "wide" } : {});
      fact.append(dom.make("dt", {}, heads[column]), dom.make("dd", {}, textOf(point, column)));
      facts.append(fact);
    });
    chosen.replaceChildren(dom.make("strong", {}, `point ${point.toLocaleString("en")}`), facts, line);
    if (scroll) chosen.scrollIntoView({ block: "nearest" });
  }

  const names = columns.map((name) => name.toLowerCase().replace(/^-d /, ""));
  const settings = names.slice(0, columns.indexOf("end_to_end_seconds"));
  const WORD = /[^\s,="]*=(?:"[^"]*"?|\[[^\]]*\]?|[^\s,]*)|"[^"]*"?|[^\s,]+/g;
  const numeric = (word) => word !== "" && !Number.isNaN(Number(word));

  /** What is searched for, as words and as names with values: `mxu=256`, `mxu = 256`, `mxu 256` and `--set mxu=256` are one. Blanks and commas
   * stand between words, quotation marks around those that belong together. */
  function asked(text) {
    const plain = text.toLowerCase().replaceAll(/\s*=\s*/g, "=").replaceAll(/(\d),(?=\d{3}(?!\d))/g, "$1");
    const words = (plain.match(WORD) ?? []).map((word) => word.replaceAll('"', "")).filter((word) => !["", "--set", "-d"].includes(word));
    return words.flatMap((word, place) => {
      if (numeric(word) && names.includes(words[place - 1])) return [];
      return names.includes(word) && numeric(words[place + 1] ?? "") ? [`${word}=${words[place + 1]}`] : [word];
    });
  }

  /** The columns of this name, or those that have it in theirs. */
  function columnsOf(name) {
    const all = names.map((_, column) => column);
    const own = all.filter((column) => names[column] === name);
    return own.length > 0 || name === "" ? own : all.filter((column) => names[column].includes(name));
  }

  /** Whether a value is a number, however it is written, or has a text. Fractions have the digits that they have here. */
  function matches(own, value) {
    if (typeof own === "string") return own.toLowerCase().includes(value);
    if (own === null || !numeric(value)) return false;
    return own === Number(value) || (!Number.isInteger(own) && Math.abs(own) < 1e6 && own === Number(Number(value).toPrecision(6)));
  }

  /** Whether a point has every word, in any order: in its texts, or as a value of a column. */
  function has(point, words) {
    return words.every((word) => {
      const [name, value] = word.split("=");
      const own = value === undefined ? [] : columnsOf(name);
      if (own.length > 0) return own.some((column) => matches(valueOf(point, column), value));
      return shared.some((place) => matches(valueOf(point, place), word)) || (numeric(word) && settings.some((_, place) => matches(valueOf(point, place), word)));
    });
  }

  function arrange() {
    const words = asked(find.value);
    order = rows.map((_, point) => point).filter((point) => has(point, words));
    const { column, down } = sorted;
    if (column >= 0) {
      order.sort((a, b) => {
        const [left, right] = [valueOf(a, column), valueOf(b, column)];
        if (left === null || right === null) return (left === null) - (right === null); // those without a value are last either way
        const less = left < right ? -1 : Number(left > right);
        return down ? -less : less;
      });
    }
    start = 0;
    draw();
  }

  function head(column) {
    const cell = dom.make("th", { ...looks(column), ...(sorted.column === column ? { "aria-sort": sorted.down ? "descending" : "ascending" } : {}) });
    const sign = sorted.column === column ? (sorted.down ? " ▾" : " ▴") : "";
    const button = dom.make("button", { type: "button", title: `${columns[column]} in the table's file` }, heads[column] + sign);
    button.addEventListener("click", () => {
      sorted = { column, down: sorted.column === column && !sorted.down };
      arrange();
      body.querySelectorAll("th button")[shown.indexOf(column)].focus();
    });
    cell.append(button);
    return cell;
  }

  function draw() {
    const top = dom.make("tr");
    top.append(dom.make("th", {}, "point"), ...shown.map(head));
    const lines = order.slice(start, start + PAGE).map((point) => {
      const row = dom.make("tr", { id: `row-${point}` });
      const first = dom.make("td");
      first.append(dom.make("a", { href: `#point=${point}` }, point.toLocaleString("en")));
      row.append(first, ...shown.map((column) => dom.make("td", looks(column), textOf(point, column))));
      return row;
    });
    body.replaceChildren(top, ...lines);
    const end = Math.min(start + PAGE, order.length);
    count.textContent = order.length ? `${(start + 1).toLocaleString("en")} to ${end.toLocaleString("en")} of ${order.length.toLocaleString("en")}` : "none";
    steps.earlier.disabled = start === 0;
    steps.later.disabled = end >= order.length;
    showChosen(false);
  }

  steps.earlier.addEventListener("click", () => {
    start -= PAGE;
    draw();
  });
  steps.later.addEventListener("click", () => {
    start += PAGE;
    draw();
  });
  find.addEventListener("input", arrange);
  document.querySelector("main").addEventListener("click", (event) => {
    const mark = event.target.closest("[data-point]");
    if (mark) location.hash = `point=${mark.dataset.point}`;
  });
  addEventListener("hashchange", () => showChosen(true));
  const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => target.classList.toggle("wider", target.scrollWidth > target.clientWidth)));
  document.querySelectorAll(".chart").forEach((chart) => sizes.observe(chart));
  draw();
  showChosen(true);
})();
