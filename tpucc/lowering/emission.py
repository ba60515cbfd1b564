"""One step on one part of the batch, while its instructions are written: its buffers and its walks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import BufferLayout
from tpucc.lowering.steps import Region, Step
from tpucc.lowering.tensors import Access
from tpucc.lowering.walks import nest, walks


@dataclass(frozen=True, slots=True, eq=False)
class Emission:
    """A step on one part of the batch. Its instructions go to `emitter`. `is_last` says that they complete all rows of the step's
    result."""

    step: Step
    part: int
    layout: BufferLayout
    emitter: Emitter
    is_last: bool = True

    @property
    def results(self) -> range:
        """The buffers of the result, one for each column block."""
        return self.layout.column_blocks(self.step.result, self.part)

    def of(self, step: Step, *, is_last: bool) -> Emission:
        """The emission of `step`, which is a part of this emission's step."""
        return replace(self, step=step, is_last=self.is_last and is_last)

    def buffer(self, access: Access, block: int) -> int:
        """The buffer of a column block of a value, or of its only block. It is read from the host if it isn't in the unified buffer yet."""
        blocks = self.layout.column_blocks(access.tensor, self.part)
        buffer = blocks[min(block, len(blocks) - 1)]
        self.emitter.require(buffer)
        return buffer

    def complete(self, buffer: int) -> None:
        """Says that the step has written all rows of a buffer of its result that it writes."""
        if self.is_last:
            self.emitter.complete(buffer)

    def compute(self, region: Region, n: int) -> None:
        """Writes the `vector` or `pool` instructions of a region for column block n of the result: one for each two loops over its rows."""
        sources = tuple(self.buffer(access, n) for access in region.accesses)
        if region.parameter_blocks:
            self.emitter.configure(region.parameter_blocks[n])
        for walk in walks(nest(region.y.shape, tuple(access.steps for access in region.walked))):
            self.emitter.compute(region, walk, sources, self.results[n])
