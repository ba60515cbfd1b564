/** The unified buffer: who has which rows when, over the timeline's time. */
const buffer = (() => {
  const [TOP, FADED] = [16, 0.25];
  const canvas = document.getElementById("buffer");
  const { buffers, machine } = model;
  const highest = Math.max(1, machine.peak_rows, machine.lower_bound_rows);
  let view = null;
  let lit = null;

  function draw(context, width, height, x) {
    const y = (row) => height - 6 - (row / highest) * (height - 6 - TOP);
    context.fillStyle = colours.of("band");
    context.fillRect(axis.LEFT, TOP, width - axis.LEFT - axis.RIGHT, height - 6 - TOP);
    const [from, to] = axis.window();
    axis.clipped(context, width, height, () => {
      buffers.forEach((stay, index) => {
        if (stay.to >= from && stay.from <= to) block(context, stay, index, x, y, width);
      });
      limit(context, width, y(machine.peak_rows), []);
      if (machine.lower_bound_rows && machine.lower_bound_rows !== machine.peak_rows) limit(context, width, y(machine.lower_bound_rows), [6, 4]);
    });
    labels(context, height, y);
  }

  function block(context, { name, kind, row, rows, from, to }, index, x, y, width) {
    const [left, right, top, low] = [x(from), x(to), y(row + rows), y(row)];
    const [wide, high] = [Math.max(1, right - left), Math.max(0.8, low - top)];
    const on = !lit || lit.buffers.has(index);
    context.globalAlpha = on ? 1 : FADED;
    context.lineWidth = lit && on ? 2 : 1;
    area(context, left, top, wide, high, kind);
    const visible = Math.min(right, width) - Math.max(left, axis.LEFT);
    if (high >= 14 && visible > 40 && context.measureText(name).width < visible - 8) {
      context.fillStyle = colours.of("ink");
      context.fillText(name, Math.max(left, axis.LEFT) + 4, (top + low) / 2 + 4);
    }
    context.globalAlpha = 1;
  }

  /** An outlined rectangle; one without room for an outline has its strong colour all over. */
  function area(context, left, top, wide, high, kind) {
    const outlined = wide > 3 && high > 3;
    context.fillStyle = colours.of(outlined ? kind : `${kind}-line`);
    context.strokeStyle = colours.of(`${kind}-line`);
    context.fillRect(left, top, wide, high);
    if (outlined) context.strokeRect(left + 0.5, top + 0.5, wide - 1, high - 1);
  }

  function limit(context, width, y, dashes) {
    context.strokeStyle = colours.of("alarm");
    context.lineWidth = 1.5;
    context.setLineDash(dashes);
    context.beginPath();
    context.moveTo(axis.LEFT, y);
    context.lineTo(width, y);
    context.stroke();
    context.setLineDash([]);
  }

  function labels(context, height, y) {
    const share = words.percent(machine.peak_rows, machine.buffer_rows);
    const bound = machine.lower_bound_rows === machine.peak_rows ? ", which is the lower bound" : `; lower bound ${words.number(machine.lower_bound_rows)}`;
    context.fillStyle = colours.of("soft");
    context.fillText(`unified buffer: at most ${words.counted(machine.peak_rows, "row")} in use, ${share}${bound}`, axis.LEFT, 11);
    context.textAlign = "end";
    if (machine.peak_rows) context.fillText(words.number(machine.peak_rows), axis.LEFT - 6, y(machine.peak_rows) + 10);
    context.fillText("row 0", axis.LEFT - 6, height - 6);
    context.textAlign = "start";
  }

  function under(event) {
    const place = ((canvas.clientHeight - 6 - event.offsetY) / (canvas.clientHeight - 6 - TOP)) * highest;
    const [time, slack] = [view.timeAt(event.offsetX), view.slack(1)];
    const inside = ({ row, rows, from, to }) => place >= row && place < row + rows && time >= from - slack && time <= to + slack;
    const id = buffers.findLastIndex(inside);
    return id < 0 ? null : { kind: "buffer", id };
  }

  function light(chosen, found) {
    lit = found?.idle ? null : found;
    view.soon();
  }

  function start() {
    view = axis.attach(canvas, draw);
    selection.follow(canvas, "buffer", under, (wanted) => selection.hold(wanted, "buffer"));
    selection.listen(light);
  }

  return { start, paint: () => view.paint() };
})();
