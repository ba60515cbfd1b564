"""The pages of `tpucc explain`: complete, and their examples show what they say when they are typed in."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

import tpucc
from tpucc.cli.main import main
from tpucc.explain import codes, explain

PACKAGE = Path(tpucc.__file__).parent
PAGES = {code: text for code in codes() if (text := explain(code)) is not None}
SECTION = re.compile(r"^## (Wrong|Mended)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w.-]+\.\w+)`[^`]*\Z")
NESTED = {"E0525"}
"""Codes whose messages have others in them."""
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


def typed_in(section: str, repeated: str, cores: int) -> tuple[list[str], str]:
    """The codes of the errors that come of a section's blocks, in the current folder, and its commands."""
    commands, runs = "", False
    for found in BLOCK.finditer(section):
        language, text = found.groups()
        name = file_of(language, section[: found.start()])
        if name:
            Path(name).write_text(text, "utf-8")
        elif language == "sh":
            commands += text
            if codes := codes_of_commands(text):
                return codes, commands
        else:
            assert language == "python"
            runs = runs or "tpucc" in text
            try:
                exec(compile(text, "example", "exec"), {})
            except tpucc.Error as error:
                return [d.code for d in error.diagnostics], commands
    if repeated and not commands and not runs:
        return codes_of_commands(repeated), commands
    return ([] if runs or commands else errors_of_model(cores)), commands


def codes_of_commands(commands: str) -> list[str]:
    """Of the first command that fails."""
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "tpucc"
        with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
            status = main(words[1:])
        if status:
            return re.findall(r"error ([EV]\d{4})", errors.getvalue()) or [f"status {status} without a code"]
    return []


def errors_of_model(cores: int) -> list[str]:
    """The codes of the errors, or else of the warnings."""
    try:
        made = tpucc.compile("model.tpu", cores=cores).compilation
    except tpucc.Error as error:
        return [d.code for d in error.diagnostics]
    assert made is not None
    assert made.model is not None
    return [d.code for d in made.model.warnings]


def test_every_code_that_can_be_emitted_has_a_page() -> None:
    assert emitted() - set(PAGES) == set()


def test_every_page_is_of_a_code_that_can_be_emitted() -> None:
    assert set(PAGES) - emitted() == set()


def test_no_two_pages_have_one_title() -> None:
    titles = [text.splitlines()[0].partition(": ")[2] for code, text in PAGES.items() if code.startswith("E0") and code < "E05"]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("code", PAGES)
def test_a_page_has_a_title_and_some_words(code: str) -> None:
    head, _, body = PAGES[code].partition("\n")
    assert head.startswith(f"# {code}: ")
    assert len(body.split()) >= 4


@pytest.mark.parametrize("code", SHOWN)
def test_the_example_of_a_page(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sections = dict(SECTION.findall(PAGES[code]))
    option = re.search(r"`--cores (\d+)`", PAGES[code])
    cores = int(option[1]) if option else 1
    found, commands = typed_in(sections["Wrong"], "", cores)
    assert found[0] == code
    assert set(found) == {code} or code in NESTED
    assert typed_in(sections["Mended"], commands, cores)[0] == []


def test_unknown_codes_have_no_page() -> None:
    assert explain("E9999") is None
    assert explain("../__init__") is None
