/** The instructions in program order, with the cycle in which each starts. */
const assembly = (() => {
  const panel = document.getElementById("view-assembly");
  const { code, texts, layers } = model;
  const HEADS = [
    ["number", "number", "The instruction's place in the program, from 0."],
    ["number", "starts", "The cycle in which its unit begins with it."],
    ["owner", "layer", "The layer whose instructions begin here."],
    ["mnemonic", "mnemonic", "What it does; the colour is that of the unit that does it."],
    ["operands", "operands", "What it reads and writes: buffers by name, rows, tiles and blocks by number, then flags."],
  ];
  let rows = null;

  function fill(row, index) {
    const [mnemonic, ...operands] = texts[index].split(" ");
    const first = index === 0 || code.layer[index] !== code.layer[index - 1];
    const name = first ? (layers[code.layer[index]]?.brief ?? "") : "";
    row.classList.toggle("lit", selection.lit()?.instructions[index] === 1);
    row.classList.toggle("held", selection.same(selection.current(), { kind: "instruction", id: index }));
    row.replaceChildren(
      list.cell("number", words.number(index)),
      list.cell("number", words.number(code.start[index])),
      list.cell("owner", name),
      list.cell(`mnemonic u-${model.unitOf(index)}`, mnemonic),
      list.cell("operands", operands.join(" ")),
    );
  }

  const instruction = (event) => {
    const index = list.rowOf(event);
    return index < 0 ? null : { kind: "instruction", id: index };
  };

  function light(chosen, lit, from) {
    if (views.current() !== "assembly") return; // where a hidden list is scrolled to can't be known, and asking lays the page out
    const first = lit ? lit.instructions.indexOf(1) : -1;
    if (first >= 0 && from !== "assembly" && selection.held()) rows.reveal(first);
    else rows.draw();
  }

  function start() {
    panel.style.setProperty("--owner", `${Math.max("layer".length, ...layers.map((layer) => layer.brief.length))}ch`);
    rows = list.open(panel, () => code.count, fill, HEADS.map(([kind, name, meaning]) => tips.explain(list.cell(kind, name), meaning)));
    selection.follow(panel, "assembly", instruction);
    selection.listen(light);
  }

  /** Where the list stands was not known while it was hidden. */
  const shown = () => light(selection.current(), selection.lit(), "");

  return { start, shown };
})();
