/** Steps, plays, and says which cycle it is. The address keeps the cycle, so that one can link to it. */
(() => {
  const CYCLE = 1100;
  const last = data.cycles.length - 1;
  const part = (id) => document.getElementById(id);
  const [slider, play, speed, bars] = ["cycle", "play", "speed", "bars"].map(part);
  const frame = document.querySelector(".frame");
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const state = { number: -1, timer: 0 };

  const say = (number) => {
    part("number").textContent = `cycle ${number}`;
    part("last").textContent = `of ${last}`;
    part("words").replaceChildren(...words.cycle(number).map((text) => boxes.paragraph(text, "")));
    slider.setAttribute("aria-valuetext", `cycle ${number}: ${words.cycle(number).join(" ")}`);
  };

  const go = (wanted) => {
    const number = Math.min(Math.max(wanted, 0), last);
    if (number === state.number) return;
    const pace = CYCLE / Number(speed.value);
    scene.show(number, number === state.number + 1 && !calm.matches ? Math.min(450, pace * 0.45) : 0);
    state.number = number;
    slider.value = String(number);
    targets.show(number);
    say(number);
    for (const [index, bar] of [...bars.children].entries()) bar.classList.toggle("now", index === number);
    try {
      history.replaceState(null, "", `#cycle-${number}`);
    } catch {
      // A page inside another one has no address of its own.
    }
  };

  const pause = () => {
    window.clearTimeout(state.timer);
    state.timer = 0;
    play.textContent = "Play";
  };

  const advance = () => {
    go(state.number + 1);
    if (state.number === last) pause();
    else state.timer = window.setTimeout(advance, CYCLE / Number(speed.value));
  };

  const toggle = () => {
    if (state.timer) {
      pause();
      return;
    }
    if (state.number === last) go(0);
    play.textContent = "Pause";
    state.timer = window.setTimeout(advance, 150);
  };

  const jump = (wanted) => {
    pause();
    go(wanted);
  };

  const KEYS = {
    ArrowRight: () => jump(state.number + 1),
    ArrowLeft: () => jump(state.number - 1),
    Home: () => jump(0),
    End: () => jump(last),
    " ": toggle,
  };
  const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

  const act = (pressed) => {
    if (pressed.shiftKey && MOVES[pressed.key]) return () => targets.move(...MOVES[pressed.key]);
    return KEYS[pressed.key];
  };

  const ours = (pressed) => {
    if (pressed.ctrlKey || pressed.altKey || pressed.metaKey || pressed.target === speed) return false;
    return pressed.key !== " " || !(pressed.target instanceof HTMLButtonElement);
  };

  document.addEventListener("keydown", (pressed) => {
    const action = act(pressed);
    if (!action || !ours(pressed)) return;
    pressed.preventDefault();
    action();
  });

  const drawBars = () => {
    const most = data.rows * data.columns;
    for (const [number, cycle] of data.cycles.entries()) {
      const bar = document.createElement("button");
      bar.type = "button";
      bar.tabIndex = -1;
      bar.title = `cycle ${number}: ${cycle.busy} of ${most} elements multiply`;
      bar.style.setProperty("--share", String(cycle.busy / most));
      bar.addEventListener("click", () => jump(number));
      bars.append(bar);
    }
  };

  drawBars();
  slider.addEventListener("input", () => jump(Number(slider.value)));
  play.addEventListener("click", toggle);
  part("back").addEventListener("click", () => jump(state.number - 1));
  part("step").addEventListener("click", () => jump(state.number + 1));
  part("first").addEventListener("click", () => jump(0));
  const linked = /^#cycle-(\d{1,6})$/.exec(window.location.hash);
  go(linked ? Number(linked[1]) : data.first);
  frame.scrollLeft = frame.scrollWidth; // in a narrow window: the array, which is on the right
})();
