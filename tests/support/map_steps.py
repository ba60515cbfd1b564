"""Random sources of networks on images with a `train`, of ragged sizes, for the training machine."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

CHANNELS = (1, 2, 3, 5, 16, 17, 130)
T = TypeVar("T")
OPTIMIZERS = ("sgd(rate=0.05)", "momentum(rate=0.02)", "adam(rate=0.01)")


class _Network:
    """A network as it grows: its lines, and the shape [height, width, channels] of its last value `h`."""

    def __init__(self, draw: np.random.Generator) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.height, self.width = (int(draw.integers(3, 9)) for _ in range(2))
        self.channels = self.one_of((1, 2, 3, 5))
        self.count = 0

    def one_of(self, things: tuple[T, ...]) -> T:
        return things[int(self.draw.integers(len(things)))]

    def weight(self, shape: str) -> str:
        self.count += 1
        self.lines.append(f'weight w{self.count}: f32[{shape}] = "w{self.count}"')
        return f"w{self.count}"

    def window(self) -> tuple[int, int, int, str]:
        """Sides of a window that fits, its stride, and the padding."""
        high, wide = (min(self.one_of((1, 2, 3)), size) for size in (self.height, self.width))
        return high, wide, self.one_of((1, 1, 2)), self.one_of(('"same"', '"valid"'))

    def walked(self, high: int, wide: int, stride: int, padding: str) -> None:
        if padding == '"valid"':
            self.height, self.width = self.height - high + 1, self.width - wide + 1
        self.height, self.width = -(-self.height // stride), -(-self.width // stride)

    def conv(self) -> None:
        high, wide, stride, padding = self.window()
        groups = self.channels if self.channels < 6 and self.draw.random() < 0.3 else 1
        filters = groups * self.one_of((1, 2)) if groups > 1 else self.one_of(CHANNELS)
        kernel, bias = self.weight(f"{high}, {wide}, {self.channels // groups}, {filters}"), self.weight(f"{filters}")
        self.lines.append(f"h = conv2d(h, {kernel}, stride={stride}, padding={padding}, groups={groups}) + {bias}")
        self.walked(high, wide, stride, padding)
        self.channels = filters

    def transposed(self) -> None:
        if self.height * self.width > 16:
            return
        filters, stride = self.one_of((1, 2, 5)), self.one_of((1, 2))
        kernel = self.weight(f"2, 3, {self.channels}, {filters}")
        self.lines.append(f'h = conv_transpose2d(h, {kernel}, stride={stride}, padding="same")')
        self.height, self.width, self.channels = self.height * stride, self.width * stride, filters

    def pool(self) -> None:
        high, wide, stride, padding = self.window()
        self.lines.append(f"h = {self.one_of(('max_pool', 'avg_pool'))}(h, size=({high}, {wide}), stride={stride}, padding={padding})")
        self.walked(high, wide, stride, padding)

    def norm(self) -> None:
        gamma, beta = self.weight(f"{self.channels}"), self.weight(f"{self.channels}")
        mean, variance = self.weight(f"{self.channels}"), self.weight(f"{self.channels}")
        self.lines.append(f"h = batch_norm(h, {gamma}, {beta}, {mean}, {variance}, momentum=0.9)")

    def element(self) -> None:
        self.lines.append(f"h = {self.one_of(('relu(h)', 'tanh(h)', 'dropout(h, 0.3)', 'h + sigmoid(h)', 'relu6(h) * h'))}")

    def moved(self) -> None:
        kinds = ("concat([h, 0.5 * h], axis=3)", "transpose(h, (0, 2, 1, 3))", "h[:, 1:]", "pad(h, ((0, 0), (0, 1), (1, 0), (0, 0)))")
        text = self.one_of(kinds)
        if (text.startswith("h[") and self.height < 3) or ("concat" in text and self.channels > 20):
            return
        self.lines.append(f"h = {text}")
        match kinds.index(text):
            case 0:
                self.channels *= 2
            case 1:
                self.height, self.width = self.width, self.height
            case 2:
                self.height -= 1
            case _:
                self.height, self.width = self.height + 1, self.width + 1

    def answer(self) -> str:
        if self.draw.random() < 0.5:
            self.lines.append("f = global_avg_pool(h)")
            return f"f @ {self.weight(f'{self.channels}, 5')}"
        self.lines.append("f = flatten(h)")
        return f"f @ {self.weight(f'{self.height * self.width * self.channels}, 5')}"


def random_source(seed: int) -> tuple[str, int]:
    """A source, and the microbatches of its training."""
    draw = np.random.default_rng(seed)
    net = _Network(draw)
    microbatches = net.one_of((1, 1, 2))
    batch = microbatches * net.one_of((1, 2, 3, 5))
    image = f"x: f32[{batch}, {net.height}, {net.width}, {net.channels}]"
    net.lines.append("h = x")
    net.conv()
    for _ in range(int(draw.integers(1, 5))):
        net.one_of((net.conv, net.pool, net.norm, net.element, net.element, net.moved, net.transposed))()
    answer = net.answer()
    text = "\n    ".join(net.lines)
    return (
        f"weights random(seed={seed % 1000})\nmodel net({image}) -> f32[{batch}, 5]:\n    {text}\n    return {answer}\n"
        f"optimizer {net.one_of(OPTIMIZERS)}\ntrain({image}, label: i32[{batch}] in [0, 4]) -> f32[]:\n"
        f"    return cross_entropy(softmax(net(x)), label)\n"
    ), microbatches
