#!/usr/bin/env node
// First fit: goes through time and gives each buffer the lowest rows that are free.
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { first, last, rows } = asked.lives;

function allocate() {
  const starts = rows.map(() => 0);
  const placed = [];
  for (const buffer of [...rows.keys()].sort((a, b) => first[a] - first[b])) {
    const together = placed.filter((other) => first[other] <= last[buffer] && first[buffer] <= last[other]);
    let start = 0;
    for (const other of together.sort((a, b) => starts[a] - starts[b])) {
      if (start + rows[buffer] <= starts[other]) break;
      start = Math.max(start, starts[other] + rows[other]);
    }
    if (start + rows[buffer] > asked.rows) return { TooLarge: `no ${rows[buffer]} rows are free` };
    starts[buffer] = start;
    placed.push(buffer);
  }
  return { result: starts };
}

process.stdout.write(JSON.stringify({ version: 1, ...allocate() }));
