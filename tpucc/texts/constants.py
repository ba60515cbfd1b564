"""The constants of a compiled model, for texts in which they stand by their digests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from tpucc.compilation import Compilation
from tpucc.ir import Constant, Graph
from tpucc.ir.attributes import non_default
from tpucc.ir.digests import data_of, digest_of
from tpucc.isa.program import Program


class ModelConstants:
    """What `tpucc.ir.digests.Known` asks for: of a program, and where it was compiled from its source of every graph on the way."""

    def __init__(self, name: str, program: Program, compilation: Compilation | None = None) -> None:
        self.name, self._program, self._compilation = name, program, compilation
        self._of_size: dict[int, dict[str, bytes]] = {}

    def find(self, digest: str, size: int) -> bytes | None:
        """The constant of `size` bytes with this digest. Only constants of lengths that are asked for are read."""
        if size not in self._of_size:
            self._of_size[size] = {digest_of(data): data for data in self._with_size(size)}
        return self._of_size[size].get(digest)

    def _with_size(self, size: int) -> Iterator[bytes]:
        program = self._program
        if size == program.target.mxu**2:
            yield from (tile.tobytes() for tile in program.tiles)
        if size == program.blocks.dtype.itemsize:
            yield from (block.tobytes() for block in program.blocks)
        for field in program.blocks.dtype.names or ():
            if size == program.blocks.dtype[field].itemsize:
                yield from (block[field].tobytes() for block in program.blocks)
        if size == program.constants.nbytes:
            yield program.constants.tobytes()
        yield from (data for data in self._host_data if len(data) == size)
        yield from (constant.data.tobytes() for constant in self._graph_constants if constant.data.nbytes == size)

    @cached_property
    def _host_data(self) -> tuple[bytes, ...]:
        """The data in the host's part."""
        program = self._program
        texts = (program.prologue, *(step.graph for step in program.host_steps), program.epilogue)
        return tuple(data for text in texts for data in data_of(text))

    @cached_property
    def _graph_constants(self) -> tuple[Constant, ...]:
        """The constants of all graphs, each array once."""
        stages = self._compilation.snapshots if self._compilation else ()
        graphs = [stage.value for stage in stages if isinstance(stage.value, Graph)]
        found = {id(constant.data): constant for graph in graphs for constant in constants_of(graph)}
        return tuple(found.values())


def constants_of(graph: Graph) -> Iterator[Constant]:
    """Every constant among the attributes of a graph's nodes."""
    return (value for node in graph for _, value in non_default(node.attributes) if isinstance(value, Constant))
