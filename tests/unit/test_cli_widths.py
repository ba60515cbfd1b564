"""What commands print fits 80 columns, and no number in a table is cut."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.support.cases import each, one_of
from tpucc.cli.columns import described, filled, prose, table_width
from tpucc.cli.commands import COMMANDS
from tpucc.cli.main import main
from tpucc.cli.messages import fitted, say
from tpucc.explain.codes import codes
from tpucc.explain.names import _initials
from tpucc.explain.tables import WIDTH, table
from tpucc.ops import OPS
from tpucc.target import target_names

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
WAYS: tuple[tuple[str, ...], ...] = (
    ("check",),
    ("profile", "--chart"),
    ("profile", "--timing", "serial"),
    ("profile", "--cores", "1,2"),
    ("profile", "--activation-bits", "16"),
    ("compile", "--emit", "stats", "-o", "out", "--chart"),
    ("compile", "--emit", "stats", "-o", "out", "--cores", "2", "-O0"),
    ("run", "--check"),
    ("report", "-o", "r.html"),
    ("viz", "-o", "v.svg"),
)
LONG = """
weights random(seed=1)
model a_model_whose_name_is_long_enough_to_fill_most_of_a_line(an_input_with_a_name_of_its_own: f32[4, 6] in [-1.0, 1.0]) -> f32[4, 4]:
    weight first_weights_of_the_model: f32[6, 300]
    weight second_weights_of_the_model: f32[300, 4]
    a_hidden_layer_with_quite_a_long_name = relu(an_input_with_a_name_of_its_own @ first_weights_of_the_model)
    an_output_layer_with_a_long_name_too = a_hidden_layer_with_quite_a_long_name @ second_weights_of_the_model
    return an_output_layer_with_a_long_name_too
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(list(arguments)) == 0
    captured = capsys.readouterr()
    return captured.out.splitlines() + [part for line in captured.err.splitlines() for part in fitted(line, WIDTH)]


def require_narrow(lines: list[str]) -> None:
    """Only a single word may be wider: a path, a name."""
    wide = [line for line in lines if cell_len(line) > WIDTH and " " in line.strip()]
    assert not wide


TYPED = [
    pytest.param(model, way, id=f"{model}-{' '.join(way)}", marks=pytest.mark.soak if model != "long" and (row + column) % 2 else ())
    for column, way in enumerate(WAYS)
    for row, model in enumerate(("04_digits_mlp", "05_digits_cnn", "long"))
]
"""Every command with the longest names and one of the programs; in `make soak`, with both."""


@pytest.mark.parametrize(("model", "way"), one_of(2, TYPED))
def test_models(
    model: str, way: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.tpu").write_text(LONG, "utf-8")
    source = "long.tpu" if model == "long" else str(PROGRAMS / f"{model}.tpu")
    lines = printed(capsys, way[0], source, *way[1:])
    require_narrow(lines)
    figures = [line for line in lines if re.search(r"\d$", line) and "  " in line]
    assert not any(re.search(r"\d…", line.partition(" ")[2]) for line in figures), "names may be cut, at the beginning of a line"


@pytest.mark.long
def test_a_small_machine(capsys: pytest.CaptureFixture[str]) -> None:
    require_narrow(printed(capsys, "profile", str(PROGRAMS / "02_iris.tpu"), "--target", "tiny", "--chart"))


@pytest.mark.long
def test_reference(capsys: pytest.CaptureFixture[str]) -> None:
    for name in OPS:
        require_narrow(printed(capsys, "ops", name))
    for name in target_names():
        require_narrow(printed(capsys, "targets", name))
    for command in ("ops", "passes", "targets", "doctor", "explain"):
        require_narrow(printed(capsys, command))


def test_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    """The programs in them too: they are typed in."""
    for code in codes():
        require_narrow(printed(capsys, "explain", code))


@each(list(COMMANDS))
def test_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    require_narrow(printed(capsys, name, "--help"))


def test_a_table_cuts_names_and_never_numbers() -> None:
    head = ("layer", "kind", *(f"column{i}" for i in range(6)))
    rows = [("a.very.long.name.of.a.layer." * 3, "conv", *(f"{10**7 + i:,}" for i in range(6))), ("層" * 30, "fc", *"123456")]
    lines = table(head, rows).split("\n")
    require_narrow(lines)
    assert all(f"{10**7 + i:,}" in lines[1] for i in range(6))
    assert lines[1].split()[0] == "a.ver…er."
    assert len({cell_len(line) for line in lines}) == 1
    assert lines[2].split()[1:] == ["fc", *"123456"]


def test_columns_stand_two_blanks_apart_where_there_is_room() -> None:
    names = [f"stage{stage}.block{block}.{last}" for stage in (1, 2) for block in (1, 2) for last in ("conv2", "conv1")]
    short = [
        line.split()[0]
        for line in table(("layer", *"abcdefgh"), [(name, "123,456,789", *["123,456"] * 7) for name in names]).split("\n")[1:]
    ]
    assert len({*short}) == len(names), "neither beginnings nor ends tell these names apart"
    assert short[0] == "s1.b1.conv2"
    assert table(("a", "bb"), [("x", "1"), ("yy", "22")]).split("\n") == ["a   bb", "x    1", "yy  22"]


def firsts(names: Sequence[str], width: int = WIDTH) -> list[str]:
    """The names in the first column of a table whose numbers leave eleven columns to it."""
    lines = table(("layer", *"abcdefgh"), [(name, "12,345,678,901", *["123,456"] * 5, *["12,345"] * 2) for name in names], width=width)
    return [line.split()[0] for line in lines.split("\n")[1:]]


def test_initials_keep_numbers_and_tell_names_apart() -> None:
    """Those of an imported EfficientNet: digits were doubled, and layers of one block looked alike."""
    block = [f"features.{stage}.1.block.{part}" for stage in (6, 66) for part in ("0.0", "1.0", "2.fc1", "2.fc2", "3.0")]
    assert firsts(["features.0.0", *block])[:6] == ["f.0.0", "f.6.1.b.0.0", "f.6.1.b.1.0", "f.6.1.….fc1", "f.6.1.….fc2", "f.6.1.b.3.0"]
    assert len({*firsts(block)}) == len(block)
    assert firsts(block, 2 * WIDTH) == block, "a wider terminal has room"


@each(
    [
        ("layer1_2.x", "l1_2.x"),
        ("conv2d_3.x", "c3.x"),
        ("12.x", "12.x"),
        ("3x3.x", "3x3.x"),
        ("b.x", "b.x"),
        (".x", ".x"),
    ]
)
def test_initials(name: str, brief: str) -> None:
    assert _initials(name, 20, len) == brief


def test_names_that_no_cut_tells_apart_make_a_table_wider() -> None:
    alike = [f"{'a' * 20}{digit}{'b' * 20}" for digit in "123456"]
    assert firsts(alike) == [f"{'a' * 20}{digit}…" for digit in "123456"]


def test_prose_is_filled_and_programs_are_left_alone() -> None:
    long = "x = " + "1 + " * 40 + "1"
    text = prose(
        f"# {'title ' * 20}\n\n{'word ' * 30}\n{'more ' * 3}\n\n- {'item ' * 20}\n\n> {'said ' * 20}\n\n```tpu\n{long}\n\n  - y\n```\n"
    )
    assert long in text
    assert "\n\n  - y\n```" in text
    assert "word more" in " ".join(text.split())
    assert "\n  item" in text
    assert text.count("\n> said") == 2
    require_narrow([line for line in text.split("\n") if not line.startswith(("#", "x = "))])
    assert described("name", 6, "word " * 20).split("\n")[1].startswith(" " * 7 + "word")
    assert filled("a b", "# ", "# ") == "# a b"


PRINTED = [("check", "long.tpu"), ("profile", "long.tpu", "--chart"), ("doctor",)]
ENCODED = [(words, encoding) for encoding in ("cp1252", "ascii") for words in PRINTED]


@pytest.mark.parametrize(
    ("words", "encoding"),
    [*ENCODED[:-1], pytest.param(*ENCODED[-1], marks=pytest.mark.long)],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_no_encoding_of_the_output_is_a_fault(
    words: tuple[str, ...], encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the entry point runs a command, with streams as Python opens them for this encoding."""
    monkeypatch.chdir(tmp_path)
    Path("long.tpu").write_text(LONG, "utf-8")
    monkeypatch.setattr("tpucc.cli.main._leave", sys.exit)
    monkeypatch.setattr("sys.argv", ["tpucc", *words])
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding, "strict"))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace"))
    with pytest.raises(SystemExit) as end:
        main()
    sys.stdout.flush()
    assert end.value.code == 0
    assert sys.stdout.buffer.tell() > 0


SHAPES = """m.tpu:12:9: error E0301: the inner sizes of f32[64, 128] @ f32[256, 10] differ; call reshape(x, [2, 3]) or "two words" first
  12 |     y = a_name_that_takes_its_room(another_name_that_takes_its_room, a_third_one) @ w2
     |     ^ x is f32[64, 128] but w2 is f32[256, 10], as it is declared in the line before the last
help: did you mean w1, which is f32[128, 256]? it has the size that the product needs, and stands in this line too"""


@each([80, 50, 20])
def test_messages_are_broken_between_tokens_and_lines_of_the_source_are_not(room: int) -> None:
    """Words that brackets or quotation marks hold together are one token."""
    lines = [part for line in SHAPES.split("\n") for part in fitted(line, room)]
    text = re.sub(r"\s+", " ", re.sub(r"(?m)^ +\| ", "", "\n".join(lines)))
    for whole in ("f32[64, 128]", "f32[256, 10]", "reshape(x, [2, 3])", '"two words"', "f32[128, 256]?"):
        assert any(whole in line for line in lines), whole
    assert all(line in lines for line in SHAPES.split("\n") if line.startswith("  12 |"))
    assert all(len(line) <= max(room, 27) or line.startswith("  12 |") for line in lines)
    assert text.split() == re.sub(r"(?m)^ +\| ", "", SHAPES).split()


def test_a_number_of_a_message_stays_with_its_unit() -> None:
    for room in range(20, 45):
        assert all(line.endswith(" dB") for line in fitted(f"note: {' '.join(['36.9 dB'] * 20)}", room))


def test_a_terminal_gets_short_lines_and_a_file_whole_ones(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    say(SHAPES)
    assert capsys.readouterr().err == f"{SHAPES}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for columns, widest in (("60", 60), ("20", 20), ("300", 80), ("none", 80), ("-5", 20)):
        monkeypatch.setenv("COLUMNS", columns)
        say("note: " + "word " * 99)
        assert widest - 5 < max(map(len, capsys.readouterr().err.split("\n"))) <= widest


def test_tables_are_as_wide_as_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS says so for a pipe as well; narrower than 80 columns they would lose numbers."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table_width() == WIDTH
    for columns, width in (("160", 160), ("60", WIDTH), ("none", WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        assert table_width() == width


def test_so_do_the_verdicts_of_judge(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the verifier says of a stage names two instructions in full."""
    Path("mine.py").write_text("def synchronise(listing): return []\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["judge", str(small), "--replace", "synchronise=mine.py"]) == 1
    said = capsys.readouterr().out
    assert "V0801" in said
    require_narrow(said.splitlines())


def test_long_names_that_begin_alike_keep_their_ends() -> None:
    """Layers of one block: cut behind, all of them would be `features.block.7.co…`. The middle is what goes."""
    names = [f"features.block.7.convolution.of.a.network.that.names.its.parts.at.length.{n}" for n in range(3)]
    lines = table(("layer", "cycles"), [(name, "123,456") for name in (*names, "in all")]).split("\n")
    require_narrow(lines)
    assert [line.split()[0][0] + line.split()[0][-9:] for line in lines[1:4]] == ["f.length.0", "f.length.1", "f.length.2"]
    assert lines[4].startswith("in all ")
