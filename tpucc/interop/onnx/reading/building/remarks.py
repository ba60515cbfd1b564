"""What comments say of constants of a file, by names that a reader finds: the keys of the weights that are made of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tpucc.interop.onnx.reading.files.problems import named
from tpucc.ir import Graph
from tpucc.ops.weight import WeightAttributes


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence with the name of a constant between two texts. `name` is what its values are called while the file is read, and `in_file`
    is the constant's own name."""

    before: str
    name: str
    in_file: str
    after: str

    def sentences(self, keys: Collection[str], constants: Collection[str]) -> Iterator[str]:
        """One for each weight that is made of the constant; where there is none, one that names what the file has, its `constants`."""
        file = f"{'the' if self.before else 'The'} file's constant {named(self.in_file)}" if self.in_file in constants else named(self.name)
        yield from (f"{self.before}{name}{self.after}" for name in ([named(key) for key in keys] or [file]))


def in_words(notes: Iterable[str | Remark], graph: Graph, nodes: Mapping[str, Iterable[str]], constants: Collection[str]) -> Iterator[str]:
    """Notes as sentences. `nodes` are those of the graph that are made of a constant, by its name."""
    for note in notes:
        if isinstance(note, str):
            yield note
        else:
            made = (graph.by_name[name].attributes for name in nodes.get(note.name, ()) if name in graph.by_name)
            keys = dict.fromkeys(attributes.key for attributes in made if isinstance(attributes, WeightAttributes))
            yield from note.sentences(keys, constants)
