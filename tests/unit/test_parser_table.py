"""The parser's table beside the grammar: stored once, and never used when it is stale, damaged or someone else's."""

from __future__ import annotations

import hashlib
import marshal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lark
import pytest

from tests.support.cases import each, one_of
from tpucc.frontend import parse as parsing
from tpucc.frontend import table
from tpucc.frontend.build import Builder
from tpucc.frontend.layout import Layout
from tpucc.frontend.limits import DEFAULT
from tpucc.frontend.literals import simple_hole

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "model m(x: f32[8, 4]):\n    weight w: f32[4, 3]\n    return relu(x @ w)\n"


def parser(folder: Path) -> lark.Lark:
    """A parser whose table lies in `folder`."""
    return table.parser("module", folder=folder, postlex=Layout(DEFAULT), transformer=Builder(DEFAULT, simple_hole))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[lark.Lark, lark.Lark, bytes]:
    """The parser that stores its table, the one that reads it, and the table."""
    folder = tmp_path_factory.mktemp("tables")
    return parser(folder), parser(folder), (folder / "module.table").read_bytes()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each table that is built."""
    found: list[str] = []
    original = table.Lark.__init__

    def init(self: lark.Lark, *args: Any, **given: Any) -> None:
        found.append(given["start"])
        original(self, *args, **given)

    monkeypatch.setattr(table.Lark, "__init__", init)
    return found


def test_is_stored_at_first_use_and_read_from_then_on(tmp_path: Path, built: list[str]) -> None:
    first = parser(tmp_path).parse(SOURCE)
    assert built == ["module"]
    assert [path.name for path in tmp_path.iterdir()] == ["module.table"]
    assert parser(tmp_path).parse(SOURCE) == first
    assert built == ["module"]


def test_a_stored_table_gives_the_same_parser(both: tuple[lark.Lark, lark.Lark, bytes]) -> None:
    made, read, _ = both
    assert [str(t) for t in made.terminals] == [str(t) for t in read.terminals]
    assert {str(rule) for rule in made.rules} == {str(rule) for rule in read.rules}
    for path in sorted((ROOT / "programs").glob("*.tpu")):
        text = path.read_text("utf-8").rstrip() + "\n"
        assert made.parse(text) == read.parse(text), path.name


@each(["model m(x f32[8]):\n    return x\n", "model\n", "model m(x: f32[8]):\n    return x +\n", "weights @\n", "1 = 2\n", "?\n"])
def test_a_stored_table_gives_the_same_errors(text: str, both: tuple[lark.Lark, lark.Lark, bytes]) -> None:
    found = []
    for made in both[:2]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 which one it is, is compared
            made.parse(text)
        error: Any = caught.value
        found.append((type(error), str(error), getattr(error, "accepts", None), getattr(error, "allowed", None)))
    assert found[0] == found[1]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    return content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]


def of_another_grammar(content: bytes) -> bytes:
    return hashlib.sha256(b"another grammar").digest() + content[32:]


def nonsense_with_its_digest(content: bytes) -> bytes:
    body = marshal.dumps({"data": {"parser": 3}, "memo": []})
    return content[:32] + hashlib.sha256(body).digest() + body


@pytest.mark.parametrize("harm", one_of(2, [cut, flipped, of_another_grammar, nonsense_with_its_digest, lambda _: b"", lambda c: c + b"x"]))
def test_a_stale_or_damaged_table_is_built_again(
    tmp_path: Path, both: tuple[lark.Lark, lark.Lark, bytes], built: list[str], harm: Callable[[bytes], bytes]
) -> None:
    made, _, content = both
    sound = made.parse(SOURCE)
    place = tmp_path / "module.table"
    place.write_bytes(harm(content))
    assert parser(tmp_path).parse(SOURCE) == sound
    assert built == ["module"]
    assert place.read_bytes()[:32] == content[:32]
    assert parser(tmp_path).parse(SOURCE) == sound
    assert built == ["module"]


def test_another_grammar_has_another_table(tmp_path: Path, built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    parser(tmp_path)
    other = tmp_path / "other.lark"
    other.write_text(table.GRAMMAR.read_text("utf-8") + "\n// a comment\n", "utf-8")
    monkeypatch.setattr(table, "GRAMMAR", other)
    parser(tmp_path)
    assert built == ["module", "module"]


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path: Path, built: list[str]) -> None:
    folder = tmp_path / "none"
    assert parser(folder).parse(SOURCE) == parser(folder).parse(SOURCE)
    assert built == ["module", "module"]
    (tmp_path / "module.table").mkdir()
    assert parser(tmp_path).parse(SOURCE)
    assert [path.name for path in tmp_path.iterdir()] == ["module.table"]  # what could not be put in its place is gone


def test_the_compiler_uses_it() -> None:
    assert parsing._parser("module", DEFAULT) is parsing._parser("module", DEFAULT)
    assert (table.GRAMMAR.parent / "module.table").is_file()


UNUSED = (
    "networkx", "graphviz", "onnxruntime", "tpucc.viz", "tpucc.runtime", "tpucc.api", "tpucc.isa.verify", "tpucc.isa.assembler",
    "rich", "difflib", "importlib.metadata", "tpucc.stages.replaced", "numpy.ma", "tpucc.ops.softmax", "tpucc.passes.bands",
    "tpucc.ir.parser",
)  # fmt: skip


@pytest.mark.annex
def test_check_imports_nothing_that_it_does_not_need() -> None:
    run = "import sys\nfrom tpucc.cli.main import main\nmain(['check', 'programs/01_hello.tpu'])\n"
    code = f"{run}print([name for name in {UNUSED} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
