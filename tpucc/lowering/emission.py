"""One step on one part of the batch, while its instructions are written: its buffers and its walks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import Layout
from tpucc.lowering.steps import Copy, Step
from tpucc.lowering.tensors import Access
from tpucc.lowering.walks import Walk, nest, walks
from tpucc.machines.v1 import Function


@dataclass(frozen=True, slots=True, eq=False)
class Emission:
    """A step on the accesses of its part, whose instructions go to `emitter`. `is_last`: all rows of its result are there after it."""

    step: Step
    part: int
    layout: Layout
    emitter: Emitter
    is_last: bool = True

    @property
    def results(self) -> range:
        """The buffers of the result, one for each column block."""
        return self.layout.blocks(self.step.result, self.part)

    def of(self, step: Step, *, is_last: bool) -> Emission:
        """The emission of a step that is a part of this one."""
        return replace(self, step=step, is_last=self.is_last and is_last)

    def buffer(self, access: Access, block: int) -> int:
        """The buffer of a column block, which is in the unified buffer from here on."""
        buffer = self.layout.blocks(access.tensor, self.part)[block]
        self.emitter.require(buffer)
        return buffer

    def complete(self, buffer: int) -> None:
        """This was the last of the step's work on a buffer of its result."""
        if self.is_last:
            self.emitter.complete(buffer)

    def walks(self, *accesses: Access) -> tuple[Walk, ...]:
        """The walks that visit the rows of all accesses together."""
        return walks(nest(accesses[-1].shape, tuple(access.steps for access in accesses)))

    def copy(self, copy: Copy) -> None:
        """For each column block of the result one `vector` for each two loops over the rows that are copied."""
        accesses = (copy.source, copy.target)
        for n, result in enumerate(self.results):
            source = self.buffer(copy.source, 0 if copy.every_block else n)
            for walk in self.walks(*accesses):
                self.emitter.vector(Function.COPY, walk, accesses, (source,), (False,), result)
