"""networkx is for questions of users: the examples of docs/python.md, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.annex
def test_the_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    section = page.split("## The graph in networkx\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(ROOT)
    space: dict[str, object] = {}
    printed = []
    for block in blocks:
        exec(block, space)
        printed.append(capsys.readouterr().out.splitlines())
    exe = space["exe"]
    generations = list(networkx.topological_generations(exe.graph.nx))  # type: ignore[attr-defined]
    assert [line.split(" ", 1)[0] for line in printed[0]] == [str(k) for k in range(len(generations))]
    assert printed[1][0].split(" -> ")[0] == "x"
    assert re.fullmatch(r"\d+ buffers, \d+ places", printed[2][0])


@pytest.mark.annex
def test_nothing_but_the_graph_that_is_asked_for_it_loads_networkx() -> None:
    """It takes twice as long to import as NumPy. What writes a source, the grader of a lab and a class's likeness are loaded by few
    commands."""
    files = (ROOT / "tpucc").rglob("*.py")
    loading = [path for path in files if re.search(r"^ *(import|from) networkx", path.read_text("utf-8"), re.MULTILINE)]
    assert {path.relative_to(ROOT).as_posix() for path in loading} == {
        "tpucc/ir/graph.py",
        "tpucc/labs/likeness.py",
        "tpucc/source/blocks.py",
        "tpucc/labs/waits/checks.py",
    }
