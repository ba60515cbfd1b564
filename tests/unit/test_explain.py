"""The pages of `tpucc explain`: complete, and their examples show what they say when they are typed in."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Event

import pytest

import tpucc
from tests.support.cases import LONG, each, one_of
from tpucc.cli.main import main
from tpucc.driver import compile_source
from tpucc.explain.codes import codes, explain
from tpucc.interop.onnx.writing.file import MOST_BYTES
from tpucc.interop.sources import read_source
from tpucc.isa.verify import RULES
from tpucc.language.problem import Limits
from tpucc.options import Options
from tpucc.watch.session import Session

PACKAGE = Path(tpucc.__file__).parent
PAGES = {code: text for code in codes() if (text := explain(code)) is not None}
SECTION = re.compile(r"^## (Wrong|Mended)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAYS = re.compile(r"^`(tpucc [^`]+)` says:\n\n> (.*)$", re.MULTILINE)
LONGEST = 40
"""Lines of the page of a verifier's rule."""
NAMED = re.compile(r"`([\w.-]+\.\w+)`[^`]*\Z")
NESTED = {"E0525"}
"""Codes whose messages have others in them."""
LOWER = {
    "E0604": Limits(iterations=10_000),
    "E0605": Limits(nodes=2_000),
    "E0607": Limits(static_elements=10_000),
    "E0608": Limits(all_calls=1_000),
    "E0609": Limits(steps=1_000_000),
}
"""Less than the bounds that these examples exceed: to reach those takes seconds."""
SMALLER: Mapping[str, Mapping[str, str]] = {
    "E0622": {"2048": "512", "1048576": "65536", "8388608": "524288"},
    "E0624": {"mxu=16": "mxu=256"},
}
"""Numbers of pages in place of which smaller ones show the same sooner."""
PORT = "47163"
"""The port of E0540's page: another run of the tests may have it, so that a free one takes its place."""
SIDE = "24576"
"""Of the matrix of E1023's page, which has 2.4 GB: a smaller one takes its place."""
ELSEWHERE: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "E0562": lambda patch: patch.setitem(sys.modules, "distributed", None),
    "E0963": lambda patch: patch.setitem(sys.modules, "pyrtl", None),
    "E1020": lambda patch: patch.setitem(sys.modules, "onnxruntime", None),
    "E1023": lambda patch: patch.setattr("tpucc.interop.onnx.writing.file.MOST_BYTES", 8 * 8 * 4 - 1),
}
"""Codes whose examples show another machine, on which a package isn't installed, or less than the bound that the example exceeds."""
WITHOUT_EXAMPLE = {
    "E0900": "an exception that nobody foresaw: no input is known that gives one",
    "E0901": "a built-in pass that raises: no graph is known that makes one do so",
    "E0902": "a built-in pass that returns no graph: the types of the passes exclude it",
    "E0903": "a built-in pass that makes a wrong graph: no graph is known that makes one do so",
    "E0904": "lowering's own check of what the layers' verifier has let through: no layer graph is known that gets there",
    "E0905": "a program of tpucc's own that its verifier refuses: no model is known that makes one",
    "E0962": "hardware that differs from the simulator: no program is known that makes it do so",
    "E0965": "a trace of another program, which needs the package that simulates hardware",
    "E0964": "Verilog that Yosys refuses: no target is known that gives any",
    "E0553": "a copy without a solution, which `tpucc lab pack` makes",
    "E0552": "a machine that can't isolate a submission: what mends it is to install a program, not a command of tpucc",
}
"""Pages without an example, and why: of a fault in tpucc, one that could be typed in would be a bug to mend."""
FILES = {"tpu", "toml", "asm", "tile", "graph"}
SHOWN = [code for code, text in PAGES.items() if SECTION.search(text)]


def emitted() -> set[str]:
    """Every code that stands in the package's own files as a string."""
    text = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    return set(re.findall(r'"([EVW]\d{4})"', text)) | set(re.findall(r"error (E\d{4})", text))


def file_of(language: str, before: str) -> str | None:
    """The file that a block is, by the paragraph before it; None for one that is run."""
    found = NAMED.search(before.strip().rpartition("\n\n")[2])
    ending = {"python": "py"}.get(language, language)
    if found and found[1].endswith(f".{ending}"):
        return found[1]
    return f"model.{ending}" if language in FILES else None


def typed_in(section: str, repeated: str, options: Options, names: dict[str, object]) -> tuple[list[str], str]:
    """The codes of the errors that come of a section's blocks, in the current folder, and its commands. Python code adds to `names`."""
    commands, runs = "", False
    section = SAYS.sub(r"```sh\n\1\n```", section)
    for found in BLOCK.finditer(section):
        language, text = found.groups()
        name = file_of(language, section[: found.start()])
        if name:
            Path(name).write_text(text, "utf-8")
        elif language == "sh":
            commands += text
            if codes := codes_of_commands(text):
                return codes, commands
        elif language == "diff":
            Path("model.asm").write_text(edited(Path("model.asm").read_text("utf-8"), text), "utf-8")
        else:
            assert language == "python"
            runs = runs or "tpucc" in text
            try:
                exec(compile(text, "example", "exec"), names)
            except tpucc.Error as error:
                return [d.code for d in error.diagnostics], commands
    if repeated and not commands and not runs:
        return codes_of_commands(repeated), commands
    return ([] if runs or commands else errors_of_model(options)), commands


def edited(text: str, diff: str) -> str:
    """A text whose lines after `-` are those after `+` instead; the others stand in both."""
    old, new = ("".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in kept) for kept in (" -", " +"))
    assert text.count(old) == 1
    return text.replace(old, new)


def codes_of_commands(commands: str) -> list[str]:
    """Of the first command that fails."""
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "tpucc"
        if words[1:] == ["compile", "model.tpu"] and (files := files_of(Path("model.tpu").read_text("utf-8"))):
            for name, content in files.items():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_bytes(content)
            continue
        if words[1:3] == ["compile", "model.tpu"] and "--emit" not in words:
            words += ["--emit", "graph,layers,tile,asm,tpub"]  # pictures take longer than all other files, and no error is about them
        with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
            status = main(words[1:])
        print(errors.getvalue(), file=sys.stderr, end="")
        if status:
            return re.findall(r"error ([EV]\d{4})", errors.getvalue()) or [f"status {status} without a code"]
    return []


@cache
def files_of(model: str) -> dict[str, bytes]:
    """What `tpucc compile model.tpu` writes; nothing where it fails. Most pages begin with one of a few models."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), contextlib.redirect_stderr(io.StringIO()):
        Path("model.tpu").write_text(model, "utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            status = main(["compile", "model.tpu", "--emit", "graph,layers,tile,asm,tpub"])
        return {} if status else {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def errors_of_model(options: Options) -> list[str]:
    """The codes of the errors, or else of the warnings."""
    try:
        made = compile_source(read_source(Path("model.tpu")), Path(), options)
    except tpucc.Error as error:
        return [d.code for d in error.diagnostics]
    assert made.model is not None
    return [d.code for d in made.model.warnings]


def test_every_code_that_can_be_emitted_has_a_page() -> None:
    assert emitted() - set(PAGES) == set()


def test_every_page_is_of_a_code_that_can_be_emitted() -> None:
    assert set(PAGES) - emitted() == set()


def test_no_two_pages_have_one_title() -> None:
    titles = [text.splitlines()[0].partition(": ")[2] for code, text in PAGES.items() if code.startswith("E0") and code < "E05"]
    assert len(titles) == len(set(titles))


@each({code: (code,) for code in PAGES})
def test_a_page_has_a_title_and_some_words(code: str) -> None:
    head, _, body = PAGES[code].partition("\n")
    assert head.startswith(f"# {code}: ")
    assert len(body.split()) >= 4


@pytest.mark.parametrize("code", one_of(4, one_of(2, SHOWN), LONG))
def test_the_example_of_a_page(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Session, "follow", interrupted)
    ELSEWHERE.get(code, lambda _: None)(monkeypatch)
    page = PAGES[code].replace(PORT, free_port()).replace(SIDE, "8")
    for large, small in SMALLER.get(code, {}).items():
        assert large in page
        page = page.replace(large, small)
    sections = dict(SECTION.findall(page))
    options = Options(limits=LOWER.get(code, Limits()))
    names: dict[str, object] = {}
    found, commands = typed_in(sections["Wrong"], "", options, names)
    if code not in NESTED and found[0] in NESTED:
        del found[0]
    assert found[0] == code
    assert set(found) == {code} or code in NESTED
    said = SAYS.findall(sections["Wrong"])
    printed = capsys.readouterr().err.splitlines()
    assert all(re.fullmatch(re.escape(line).replace("…", ".*"), printed[0]) for _, line in said)
    assert len(said) == code.startswith("V")
    assert typed_in(sections["Mended"], commands, options, names)[0] == []


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def interrupted(session: Session, stop: Event) -> None:
    """`tpucc watch` goes on until Ctrl-C: here it comes at once."""
    raise KeyboardInterrupt


def test_bounds_that_are_lower_here_stand_in_their_pages() -> None:
    assert f"at most {Limits().nodes:,} operations" in PAGES["E0605"]
    assert f"at most {Limits().all_calls:,} calls" in PAGES["E0608"]
    assert f"at most {Limits().instructions:,} instructions" in PAGES["E0624"]
    assert "five million steps" in PAGES["E0609"]
    assert Limits().steps == 5_000_000
    assert int(SIDE) ** 2 * 4 > MOST_BYTES


def test_every_page_has_an_example_or_a_reason_for_none() -> None:
    assert set(PAGES) - set(SHOWN) == set(WITHOUT_EXAMPLE)


@each({code: (code,) for code in RULES})
def test_the_page_of_a_rule_begins_with_its_sentence_and_is_short(code: str) -> None:
    rule = RULES[code]
    assert PAGES[code].startswith(f"# {code}: {rule.name}\n\n{rule.description}\n\n")
    assert len(PAGES[code].splitlines()) <= LONGEST


@each({code: (code,) for code in SHOWN})
def test_the_mend_of_a_page_changes_something(code: str) -> None:
    text = PAGES[code]
    assert not [old for old, new in re.findall(r"""replace\((".*?"|'.*?'), (".*?"|'.*?')\)""", text) if old == new]
    sections = dict(SECTION.findall(text))
    assert sections["Wrong"].strip() != sections["Mended"].strip()


def test_unknown_codes_have_no_page() -> None:
    assert explain("E9999") is None
    assert explain("../__init__") is None
