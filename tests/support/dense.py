"""Random dense networks as source text: ragged sizes, odd batches, branches, element-wise operators between the layers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIZES = (1, 2, 3, 7, 31, 255, 256, 257, 300, 511, 512, 513, 1000)
BATCHES = (1, 2, 3, 5, 8, 17, 64, 200, 255, 256, 257, 1000, 2047, 2049, 5000)
MOST_MACS = 60_000_000
ACTIVATIONS = (
    "relu({})", "relu6({})", "sigmoid({})", "tanh({})", "leaky_relu({}, alpha=0.2)", "elu({})", "gelu({})", "gelu({}, approximate=True)",
    "silu({})", "hard_sigmoid({})", "hard_swish({})", "{}",
)  # fmt: skip
SCALARS = ("{} * 0.5", "{} + 1.0", "2.0 - {}", "-{}", "{} - 0.25", "{} * -1.5")


@dataclass
class DenseNetwork:
    """Writes one network. `seed` decides everything."""

    seed: int
    batch: int = 0
    lines: list[str] = field(default_factory=list)
    weights: int = 0
    macs: int = 0

    def source(self) -> str:
        choose = self.choose = random.Random(self.seed)
        self.batch = choose.choice(BATCHES)
        width = choose.choice(SIZES)
        leading = f"{self.batch}, {choose.choice((2, 3))}" if self.batch <= 64 and choose.random() < 0.15 else str(self.batch)
        live = {"x": width}
        for index in range(choose.randint(1, 5)):
            name = f"h{index}"
            live[name] = self._layer(name, *choose.choice(list(live.items())))
            if choose.random() < 0.4:
                self._combine(name, live)
        last = list(live)[-1]
        ends = ("{}", "{}", "softmax({})", "argmax({})")
        results = [choose.choice(ends).format(last)] + ([choose.choice(list(live)[1:])] if choose.random() < 0.2 else [])
        known = " in [-3.0, 3.0]" if choose.random() < 0.3 else ""
        head = [f"weights random(seed={self.seed})", f"model net(x: f32[{leading}, {width}]{known}):"]
        return "\n".join([*head, *(f"    {line}" for line in self.lines), f"    return {', '.join(results)}", ""])

    def _layer(self, name: str, x: str, width: int) -> int:
        affordable = [n for n in SIZES if self.macs + self.batch * width * n <= MOST_MACS] or [1]
        units = self.choose.choice(affordable)
        self.macs += self.batch * width * units
        value = f"{x} @ {self._weight(f'{width}, {units}')}"
        if self.choose.random() < 0.7:
            bias = self._weight(str(units))
            value = self.choose.choice((f"{value} + {bias}", f"{bias} + {value}", f"{value} - {bias}"))
        self.lines.append(f"{name} = {self.choose.choice(ACTIVATIONS).format(f'({value})')}")
        return units

    def _combine(self, name: str, live: dict[str, int]) -> None:
        """Another element-wise operator on the new value: with a scalar, a vector, or a value of the same width."""
        width = live[name]
        partners = [other for other, size in live.items() if size in (width, 1)]
        kind = self.choose.randrange(4)
        if kind == 0:
            value = self.choose.choice(SCALARS).format(name)
        elif kind == 1:
            value = f"{name} {self.choose.choice('+-*')} {self._weight(str(width))}"
        elif kind == 2:
            value = f"{name} {self.choose.choice('+-*')} {self.choose.choice(partners)}"
        else:
            value = self.choose.choice(ACTIVATIONS).format(f"({name} {self.choose.choice('+-*')} {self.choose.choice(partners)})")
        self.lines.append(f"{name} = {value}")

    def _weight(self, shape: str) -> str:
        self.weights += 1
        name = f"w{self.weights}"
        self.lines.append(f"weight {name}: f32[{shape}]")
        return name
