/** What registers of the hardware have in the cycle that is shown: a list in the box of each part of the machine, where the page has a trace. */
(() => {
  const { hardware } = model;
  if (!hardware) return;
  const view = document.querySelector("#view-machine");
  const shown = [];
  for (const [part, signals] of Object.entries(hardware.parts)) {
    const list = dom.make("dl", { class: "hardware", "aria-label": "the hardware" });
    for (const [name, [starts, texts]] of Object.entries(signals)) {
      const value = dom.make("dd", texts.some((text) => text.startsWith("row ")) ? { class: "written" } : {});
      list.append(dom.make("dt", {}, name), value);
      shown.push({ starts, texts, value });
    }
    view.querySelector(`[data-part=${part}]`).append(list);
  }
  view.querySelector(".left-out").before(dom.make("p", { class: "soft hardware-words" }, hardware.words));

  const { show } = machinePlan;
  machinePlan.show = (state) => {
    show(state);
    const cycle = Math.floor(state.time);
    for (const { starts, texts, value } of shown) {
      const text = texts[machineState.until(starts, cycle) - 1];
      if (value.textContent !== text) value.textContent = text;
    }
  };
})();
