"""The playground's engine: JSON in, JSON out; whatever is wrong with a visitor's text is part of the answer."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import sys
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.playground import builder
from tests.support.watching import SMALL, WRONG
from tpucc.data.archive import npz_bytes
from tpucc.diagnostics import PluginError
from tpucc.interop.programs import example
from tpucc.isa.container import encode
from tpucc.playground import making
from tpucc.playground.engine import answered
from tpucc.plugins import depth
from tpucc.plugins.code import user_code

ALLOCATE = "def allocate(lives, rows):\n    {}\n"
UNFUSED = """from dataclasses import dataclass
from typing import ClassVar
@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "does nothing"
    def run(self, graph, context):
        {}
"""


DOUBLED = UNFUSED.format("""
        from dataclasses import replace
        from tpucc.ir.constants import Constant
        from tpucc.passes.rewriter import Rewriter, constant_of
        def rule(rewriter, node):
            if node.op != "matmul":
                return False
            x, w = rewriter.operands(node)
            double = rewriter.constant("double", Constant(2 * constant_of(w).data), w.origin)
            rewriter.put(replace(node, operands=(x.name, double.name)))
            return True
        return Rewriter(graph, by=self.name).rewrite(rule)
""")


def ids(page: str) -> set[str]:
    """The sections of a page of pictures."""
    return set(re.findall(r'<section id="([\w-]+)"', page))


def ask(kind: str, **fields: Any) -> Any:
    return json.loads(answered(json.dumps({"kind": kind, **fields})))


def test_a_program_is_that_of_tpucc_compile() -> None:
    path = example("iris").source
    answer = ask("compile", source=path.read_text("utf-8"), name=path.name)
    exe = tpucc.compile(path)
    program = base64.b64decode(answer["program"])
    assert program == encode(exe.runtime.program)
    assert answer["digest"] == hashlib.sha256(program).hexdigest()
    assert answer["stats"]["cycles"] == exe.stats["cycles"]
    assert answer["summary"].startswith(exe.runtime.summary)
    assert answer["report"] == exe.report().html


def test_the_options_count() -> None:
    source = "param wide = 6\n" + SMALL.replace("6", "wide")
    plain, other = (ask("compile", source=source, **asked) for asked in ({}, {"params": {"wide": "500"}, "level": 0, "target": "tiny"}))
    assert plain["stats"]["macs"] * 500 == other["stats"]["macs"] * 6
    assert "<h1>small on tiny</h1>" in other["report"]
    assert ask("compile", source=source, target="abacus")["diagnostics"][0]["message"].startswith("no target is named abacus")


def test_an_error_has_its_place() -> None:
    answer = ask("compile", source=WRONG, name="small.tpu")
    [found] = answer["diagnostics"]
    assert (found["code"], found["severity"], found["file"], found["line"]) == ("E0201", "error", "small.tpu", 4)
    assert found["spans"][0] | {"text": ""} == {"line": 4, "column": 24, "end_line": 4, "end_column": 25, "text": ""}
    assert set(answer) == {"diagnostics", "printed"}


@each(
    [
        ({"batch": "8"}, "the source has no param batch", "its params are rows"),
        ({"rows": "0"}, "rows = 0 doesn't fit: a size must be at least 1, found 0", "a size is a whole number from 1 up: rows = 8"),
        ({"rows": "8 8"}, "this is no value: ", "a value is a number, a text in quotes, True, False or a list, as in a source: batch = 8"),
    ]
)
def test_an_error_of_a_field_speaks_of_no_command_line(value: dict[str, str], message: str, help: str) -> None:
    source = "param rows = 4\n" + SMALL.replace("[4, ", "[rows, ")
    [found] = ask("compile", source=source, params=value)["diagnostics"]
    assert found["message"].startswith(message)
    assert found["help"][-1] == help
    assert found["file"] == ("rows" if "8 8" in value.values() else "model.tpu" if "rows" in value else None)


def test_a_page_has_no_command_line_and_no_files_of_docs() -> None:
    weights = npz_bytes({"w": np.ones((6, 3), np.float32)})
    source = 'weights "w.npz"\nmodel m(x: f32[4, 6]):\n    weight w: f32[6, 3]\n    return x @ w\n'
    [note] = ask("compile", source=source, files={"w.npz": base64.b64encode(weights).decode()})["notes"]
    assert note.endswith('Name examples in the source (calibration "FILE.npz").')
    [found] = ask("judge", source=SMALL, passes="x = 1")["diagnostics"]
    assert found["help"][0].endswith("; Original shows one")


def test_files_lie_beside_the_source() -> None:
    weights = SMALL.replace("weights random(seed=1)", 'weights "mine.npz"')
    assert ask("compile", source=weights)["diagnostics"][0]["message"] == "can't read mine.npz: no such file"
    answer = ask("compile", source=weights, files={"mine.npz": base64.b64encode(b"no archive").decode()})
    assert answer["diagnostics"][0]["message"].startswith("mine.npz: ")


@each(
    [
        ("return [0, 100, 200, 300][: len(lives.rows)]", ""),
        ("print('here'); return lives.rows * 0 - 1", "allocate.py"),
        ("return 1 / 0", "allocate.py"),
    ]
)
def test_a_stage_is_judged(body: str, found: str) -> None:
    answer = ask("judge", source=SMALL, stages={"allocate": ALLOCATE.format(body)})
    assert [each["file"] for each in answer["diagnostics"]] == [found] * bool(found)
    assert answer.get("equal", False) == (not found)
    assert answer["printed"] == "here\n" * ("print" in body)
    assert ids(answer.get("page", "")) == ({"timeline", "memory", "program"} if not found else set())


def test_a_pass_is_judged() -> None:
    wrong = ask("judge", source=SMALL, passes=DOUBLED)
    assert (wrong["equal"], wrong["diagnostics"]) == (False, [])
    assert wrong["cycles"] > 0
    assert ids(wrong["page"]) == {"rewrite-0-0"}
    assert wrong["page"].count("<svg") == 2, "before and after"
    assert "w f32[" in wrong["page"]
    assert "double.1 f32[" in wrong["page"]
    same = ask("judge", source=SMALL, passes=UNFUSED.format("return graph"))
    assert (same["equal"], same["page"]) == (True, "")
    assert same["text"].endswith("your pass changed nothing in this model")
    [found] = ask("judge", source=SMALL, passes=UNFUSED.format("raise ValueError('no')"))["diagnostics"]
    assert (found["file"], found["line"]) == ("pass.py", 8)


@each(
    [
        ({"passes": "x = ("}, "your Python raised SyntaxError: '(' was never closed"),
        ({"passes": "x = 1"}, "your Python defines no pass: it has no class"),
        ({"stages": {"lower_fc": "x = 1"}}, "your Python defines no function lower_fc"),
    ]
)
def test_a_message_names_no_file_that_the_visitor_has_not_seen(given: dict[str, Any], message: str) -> None:
    [found] = ask("judge", source=SMALL, **given)["diagnostics"]
    assert found["message"] == message


@pytest.mark.long
def test_two_compiles_are_compared_as_tpucc_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a browser tpucc is a folder, and no installed package."""
    monkeypatch.setattr("importlib.metadata.version", Mock(side_effect=PackageNotFoundError))
    (tmp_path / "small.tpu").write_text(SMALL)
    a, b = (tpucc.compile(tmp_path / "small.tpu", target=target) for target in ("tpu_v1", "tiny"))
    sides = {"a": {"source": SMALL, "name": "small.tpu"}, "b": {"source": SMALL, "name": "small.tpu", "target": "tiny"}}
    answer = ask("compare", **sides)
    found = tpucc.api.compare(a, b)
    assert (answer["diagnostics"], answer["cause"], answer["cycles"]) == ([], found.cause, [found.cycles.a, found.cycles.b])
    assert answer["summary"].startswith(f"End to end {found.seconds().words} (")
    assert answer["summary"].endswith(f"; on the device {found.cycles.b:,} cycles instead of {found.cycles.a:,}")
    assert "B: small.tpu --target tiny -O2" in answer["page"]
    names = ["the original", "this version"]
    wide = ask("compare", a={"source": SMALL}, b={"source": SMALL.replace("[4, ", "[400, ")}, said=names)
    assert "This version is better for throughput, the original for latency." in wide["cause"]
    said = ask("compare", **sides, said=names)
    assert said["cause"].startswith("This version takes ")
    assert "the original: small.tpu --target tpu_v1 -O2" in said["page"]


def test_a_compile_is_compared_with_the_one_without_a_stage() -> None:
    apart = ALLOCATE.format("return [3 * row for row in __import__('itertools').accumulate([0, *lives.rows[:-1]])]")
    answer = ask("compare", a={"source": SMALL}, b={"source": SMALL, "stages": {"allocate": apart}})
    assert "--replace allocate=allocate.py" in answer["page"]
    reach = "The buffers of B reach up to 4,096 bytes of the unified buffer, those of A to 1,024."
    assert answer["cause"].endswith(f"with the same instructions at other addresses. {reach}")


@each(
    [
        ({"source": WRONG}, {"source": SMALL}, [("a", "E0201", "the original: nothing is named v")]),
        ({"source": SMALL}, {"source": WRONG}, [("b", "E0201", "this version: nothing is named v")]),
        ({"source": WRONG}, {"source": WRONG, "level": 0}, [("both", "E0201", "the original and this version: nothing is named v")]),
        (
            {"source": SMALL, "target": "abacus"},
            {"source": SMALL, "stages": {"allocate": "x = 1"}},
            [("b", "E0526", "this version: your Python defines no"), ("a", "E0501", "the original: no target is named abacus")],
        ),
    ]
)
def test_what_is_wrong_with_a_side_is_said_of_it(a: dict[str, Any], b: dict[str, Any], found: list[tuple[str, str, str]]) -> None:
    answer = ask("compare", a=a, b=b, said=["the original", "this version"])
    assert set(answer) == {"diagnostics", "printed"}
    for said, (side, code, message) in zip(answer["diagnostics"], found, strict=True):
        assert (said["side"], said["code"], said["message"][: len(message)]) == (side, code, message)


def test_a_fault_of_a_side_is_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.playground.making.compile_source", Mock(side_effect=MemoryError()))
    [found] = ask("compare", a={"source": "a"}, b={"source": "b"})["diagnostics"]
    assert (found["side"], found["code"], found["message"]) == ("both", "E0613", "A and B: out of memory; a smaller batch needs less")


@pytest.mark.long
def test_a_side_without_python_of_the_visitor_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Mock(side_effect=making.compile_source)
    monkeypatch.setattr(making, "compile_source", compiled)
    making._kept.cache_clear()
    sides = [{"source": SMALL.replace("6", str(width))} for width in (6, 7, 8)]
    for b in sides[1:]:
        ask("compile", **b)
        ask("compare", a=sides[0], b=b)
        ask("judge", **b)
    assert compiled.call_count == 3
    for _ in range(2):
        ask("judge", source=SMALL, passes=UNFUSED.format("return graph"))
    assert compiled.call_count == 5


def test_a_puzzle_is_checked() -> None:
    known = tpucc.lab.puzzle(1)
    answer = ask("puzzle", number=1, text=known.text, seed=1)
    assert answer["text"] == str(known.check(known.text, 1))
    assert answer["solved"] == known.check(known.text, 1).solved
    assert answer["page"] == "", "it writes no output, and is not drawn"
    slow = ask("puzzle", number=8, text=tpucc.lab.puzzle(8).text, seed=1)
    assert not slow["solved"]
    assert ids(slow["page"]) == {"timeline", "memory", "program"}
    assert slow["page"].count("matrix multiply") >= 3
    assert ask("puzzle", number=99, text="")["diagnostics"][0]["code"] == "E0550"


@each(["", "[]", "{}", '{"kind": "no"}', '{"kind": "puzzle", "number": "1"}', '{"kind": "compile", "more": 1}'])
def test_what_is_no_request_is_said(request_: str) -> None:
    [found] = json.loads(answered(request_))["diagnostics"]
    assert found["code"] == "E0529"


def test_in_a_page_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """In WebAssembly none can be: the worker is the child."""
    monkeypatch.setattr("subprocess.Popen", None)
    assert ask("judge", source=SMALL, passes=UNFUSED.format("return graph"))["equal"]


def test_calls_without_an_end_are_an_error_at_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that CPython 3.13 doesn't count, and with the small stack of WebAssembly."""
    for small in (False, True):
        monkeypatch.setattr(depth, "SMALL_STACK", small)
        endless = "count = iter(range(100_000))\ndef allocate(*all):\n    next(count)\n    return allocate()\n"
        [found] = ask("judge", source=SMALL, stages={"allocate": endless})["diagnostics"]
        assert found["message"].startswith("the stage allocate raised RecursionError")
        assert (found["code"], found["line"]) == ("E0521", 4)
    before, deepest = sys.getrecursionlimit(), []

    def nested() -> None:
        deepest.append(1)
        nested()

    with pytest.raises(PluginError):
        user_code("the pass", nested).call(nested)
    assert len(deepest) <= depth.SHALLOW
    assert sys.getrecursionlimit() == before


def test_what_python_prints_or_raises_without_end_is_cut_as_in_labs() -> None:
    """Before it is sent: a page that shows 68 MB of text stands still."""
    answer = ask("judge", source=SMALL, stages={"allocate": ALLOCATE.format("print('x' * 40_000, 'y' * 59_998); 1 / 0")})
    assert answer["printed"] == "x" * 10_000 + "\n… 90,000 more characters are not kept\n"
    [found] = ask("judge", source=SMALL, stages={"allocate": ALLOCATE.format("raise ValueError('x' * 10_007)")})["diagnostics"]
    assert found["message"] == f"the stage allocate raised ValueError: {'x' * 160}… … 7 more characters are not kept"


def test_python_that_can_not_be_read_has_its_column() -> None:
    [found] = ask("judge", source=SMALL, stages={"allocate": "def allocate(lives, rows):\n    return )\n"})["diagnostics"]
    assert (found["line"], found["column"]) == (2, 12)


@each({"input": ["input('n? ')"], "read": ["import sys; sys.stdin.read()"], "lines": ["import sys\nfor line in sys.stdin: pass"]})
def test_python_that_reads_standard_input_is_told_that_there_is_none(text: str) -> None:
    before = sys.stdin
    [found] = ask("judge", source=SMALL, passes=text + "\n")["diagnostics"]
    assert found["message"].startswith("your Python raised EOFError: nobody can type into this page")
    assert sys.stdin is before


def test_a_package_is_taken_only_as_it_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the cache, too; and without a network the build says what it lacks."""
    build = builder()
    package = {"name": "@a/b", "version": "1.0", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(b"good").digest()).decode()}
    monkeypatch.setattr(build, "CACHE", tmp_path)
    monkeypatch.setattr("urllib.request.urlopen", lambda address, timeout: io.BytesIO(b"good"))
    assert build.fetched(package) == b"good"
    monkeypatch.setattr("urllib.request.urlopen", Mock(side_effect=OSError("no network")))
    assert build.fetched(package) == b"good"
    (tmp_path / "@a" / "b" / "b-1.0.tgz").write_bytes(b"bad")
    with pytest.raises(build.BuildError, match=r"@a/b 1.0 is not what packages.json says"):
        build.fetched(package)
    with pytest.raises(build.BuildError, match=r"can't fetch @a/b 2\.0 from .*: no network; a build needs the network once"):
        build.fetched(package | {"version": "2.0"})


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node to prepare Python with")
def test_python_is_prepared_without_packages_for_webassembly(tmp_path: Path) -> None:
    """As `make site` does, whose page loads them from Pyodide's host: modules are compiled, and the page makes the parser's table."""
    build = builder()
    try:
        build.copy_core(tmp_path, Path())
    except build.UnreachableError as error:
        pytest.skip(str(error))
    archive, memory = build.prepared(build.python_archive(), tmp_path)
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        names = files.namelist()
    assert memory
    assert "tpucc/language/__pycache__/parse.cpython-313.pyc" in names
    assert not any(name.endswith(".table") for name in names)
