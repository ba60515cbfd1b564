"""Graphs that cross the border between tpucc and a child, and the child that a copy of a process has."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import tpucc
from tests.support.command_line import SMALL
from tpucc.guest import files
from tpucc.guest.files import CHILD, file_at
from tpucc.guest.inside import graph_of, graph_values
from tpucc.guest.values import Shown, packed, require_plain, unpacked
from tpucc.ir import Graph
from tpucc.plugins.failures import Failed

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


@pytest.mark.long
@pytest.mark.parametrize("name", ["02_iris", "06_digits_lstm"])
def test_what_each_pass_makes_crosses_the_border_whole(name: str) -> None:
    """With its constants, places, origins, notes and firings; nodes that stay are the same objects."""
    snapshots = tpucc.compile(PROGRAMS / f"{name}.tpu", params={"batch": 2}).compilation.snapshots
    graphs = [snapshot.value for snapshot in snapshots if isinstance(snapshot.value, Graph)]
    assert len(graphs) > 30
    for before, after in pairwise(graphs):
        noted = after.noting("a sentence")
        sent = msgspec.msgpack.decode(msgspec.msgpack.encode(packed(graph_values(noted, before))))
        made = graph_of(unpacked(sent), before)
        assert (made, made.source, made.notes, made.firings) == (noted, noted.source, noted.notes, noted.firings)
        assert [(node.origin, node.of, node.place) for node in made] == [(node.origin, node.of, node.place) for node in after]
        kept = {id(node) for node in before} & {id(node) for node in after}
        assert kept <= {id(node) for node in made}


def test_a_text_that_is_no_graph_is_refused() -> None:
    graph = tpucc.compile_source(SMALL).compilation.graph
    assert graph is not None
    values = graph_values(graph, graph)
    for wrong in ({"text": "graph m\n\nh = relu(x) : f32[4]\n"}, {"constants": 5}):
        with pytest.raises((tpucc.ProgramError, TypeError)):
            graph_of({**values, **wrong}, graph)


def test_what_cannot_travel_is_shown() -> None:
    (found,) = unpacked(packed([object]))
    assert (found, repr(found)) == (Shown("<class 'object'>", "type"), "<class 'object'>")
    with pytest.raises(Failed, match="returned values with a type in them"):
        require_plain([found])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="copies of a process are POSIX's")
def test_a_copy_of_a_process_asks_a_child_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\ndef where(): return os.getppid()\n")
    file = file_at(tmp_path / "mine.py", 10)
    assert file.call("where") == os.getpid()
    if copy := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
    else:
        right = file.call("where") == os.getpid()
        CHILD.close()
        os._exit(0 if right else 1)
    assert file.call("where") == os.getpid()
    assert files.CHILD is CHILD
