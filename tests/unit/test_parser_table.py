"""The parser's table beside the grammar: stored at first use, read from then on, and made anew where it is stale or cut off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lark
import pytest

from tests.support.cases import each
from tpucc.language import parse as parsing
from tpucc.language.problem import DEFAULT

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "model m(x: f32[8, 4]):\n    weight w: f32[4, 3]\n    return relu(x @ w)\n"


@pytest.fixture
def parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], lark.Lark]]:
    """Makes the parser anew, of a grammar in a folder of its own."""
    grammar = tmp_path / "model.lark"
    grammar.write_text(parsing.GRAMMAR.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(parsing, "GRAMMAR", grammar)

    def made() -> lark.Lark:
        parsing._parser.cache_clear()
        return parsing._parser("module", DEFAULT)

    yield made
    parsing._parser.cache_clear()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each table that is built."""
    found: list[str] = []
    original: Any = lark.Lark._build_parser  # type: ignore[attr-defined]

    def build(self: lark.Lark) -> object:
        found.append(self.options.start[0])
        return original(self)

    monkeypatch.setattr(lark.Lark, "_build_parser", build)
    return found


def test_is_stored_at_first_use_and_read_from_then_on(parser: Callable[[], lark.Lark], built: list[str], tmp_path: Path) -> None:
    first = parser().parse(SOURCE)
    assert built == ["module"]
    assert {path.name for path in tmp_path.iterdir()} == {"model.lark", "module.table"}
    assert parser().parse(SOURCE) == first
    assert built == ["module"]


def test_a_stored_table_gives_the_same_parser(parser: Callable[[], lark.Lark]) -> None:
    made, read = parser(), parser()
    assert [str(t) for t in made.terminals] == [str(t) for t in read.terminals]
    assert {str(rule) for rule in made.rules} == {str(rule) for rule in read.rules}
    for path in sorted((ROOT / "programs").glob("*.tpu")):
        text = path.read_text("utf-8").rstrip() + "\n"
        assert made.parse(text) == read.parse(text), path.name


@each(["model m(x f32[8]):\n    return x\n", "model\n", "model m(x: f32[8]):\n    return x +\n", "weights @\n", "1 = 2\n", "?\n"])
def test_a_stored_table_gives_the_same_errors(text: str, parser: Callable[[], lark.Lark]) -> None:
    found = []
    for made in (parser(), parser()):
        with pytest.raises(Exception) as caught:  # noqa: PT011 which one it is, is compared
            made.parse(text)
        error: Any = caught.value
        found.append((type(error), str(error), getattr(error, "accepts", None), getattr(error, "allowed", None)))
    assert found[0] == found[1]


@pytest.mark.long
@each([lambda content: content[: len(content) // 2], lambda _: b"", lambda content: b"0" * 64 + content[64:]])
def test_a_cut_off_or_foreign_table_is_built_again(
    harm: Callable[[bytes], bytes], parser: Callable[[], lark.Lark], built: list[str]
) -> None:
    sound, table = parser().parse(SOURCE), parsing.GRAMMAR.with_name("module.table")
    table.write_bytes(harm(table.read_bytes()))
    built.clear()
    assert parser().parse(SOURCE) == sound
    assert parser().parse(SOURCE) == sound
    assert built == ["module"]


def test_another_grammar_has_another_table(parser: Callable[[], lark.Lark], built: list[str]) -> None:
    parser()
    with parsing.GRAMMAR.open("a", encoding="utf-8") as stream:
        stream.write("\n// a comment\n")
    parser()
    assert built == ["module", "module"]


def test_a_table_that_cannot_be_written_is_no_error(
    parser: Callable[[], lark.Lark], built: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "module.table").mkdir()
    assert parser().parse(SOURCE) == parser().parse(SOURCE)
    assert built == ["module", "module"]
    assert capfd.readouterr() == ("", "")


def test_the_compiler_uses_it() -> None:
    assert parsing._parser("module", DEFAULT) is parsing._parser("module", DEFAULT)
    assert parsing.GRAMMAR.with_name("module.table").is_file()


UNUSED = (
    "networkx", "graphviz", "onnxruntime", "tpucc.see", "tpucc.runtime", "tpucc.api", "tpucc.isa.assembler",
    "rich", "difflib", "importlib.metadata", "tpucc.stages.replaced", "numpy.ma", "tpucc.ops.softmax",
    "tpucc.ir.parser",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.annex
def test_check_imports_nothing_that_it_does_not_need() -> None:
    run = "import sys\nfrom tpucc.cli.main import main\nmain(['check', 'programs/01_hello.tpu'])\n"
    code = f"{run}print([name for name in {UNUSED} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_parser_needs_no_numpy() -> None:
    """The playground stores its table with a Python that has none."""
    code = "import sys, tpucc.language.parse\nprint('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
