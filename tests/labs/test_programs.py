"""Programs as submissions: labs whose functions are stages take one in any language, in the jail and with the points of Python."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.labs.test_jails import EXPLOITS, left_behind, written_as
from tests.support.command_line import run as command
from tests.support.lab_solutions import main_file, reference
from tests.unit.test_guest_programs import ALLOCATE, PYTHON
from tpucc.guest.files import CHILD
from tpucc.guest.jails import NONE, Jail
from tpucc.labs import child, find, labs
from tpucc.labs.cells import cell
from tpucc.labs.child import Child
from tpucc.labs.grading import check, contents_of, run
from tpucc.labs.lab import AS_WRITTEN, Outcome
from tpucc.labs.mine import parts_in
from tpucc.labs.start import start, starting_files
from tpucc.plugins.failures import Failed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a script names what runs it on POSIX systems")

LAB = find("allocation")
SEED = 7
CALLS = """

class Lives:
    first, last, rows = (asked["lives"][name] for name in ("first", "last", "rows"))


print(json.dumps({"result": allocate(Lives, asked["rows"])}))
"""
"""The end of a program that is a function of Python."""


def outcomes(jail: Jail, shared: Path, text: str, every: int = 1) -> list[Outcome]:
    """What the tests of the lab find of a program, or one of `every` so many."""
    with cell(shared, {LAB.program: text.encode()}, LAB.program) as made, Child(jail, made, LAB.modules) as submission:
        tests = (*LAB.public(AS_WRITTEN), *LAB.hidden(AS_WRITTEN, SEED))[::every]
        return [run(test, submission).outcome for test in tests]


def test_labs_whose_functions_are_stages_take_a_program() -> None:
    assert {lab.name: lab.program for lab in labs() if lab.program} == {name: name for name in ("tiling", "allocation", "order", "waits")}
    for lab in labs():
        assert ("## Another language\n" in starting_files(lab, AS_WRITTEN)["handout.md"]) == bool(lab.program)
    assert "`allocation` may stand beside `allocation.py`" in starting_files(LAB, AS_WRITTEN)["handout.md"]


@pytest.mark.long
def test_a_program_is_graded_in_a_jail_as_the_function_is(jail: Jail, shared: Path) -> None:
    """First fit has the same outcome in both forms, whatever it was asked."""
    with (
        cell(shared, {LAB.file: main_file(LAB, "first_fit_in_time").encode()}, LAB.file) as made,
        Child(jail, made, LAB.modules) as submission,
    ):
        tests = (*LAB.public(AS_WRITTEN), *LAB.hidden(AS_WRITTEN, SEED))
        python = [run(test, submission).outcome for test in tests]
    program = outcomes(jail, shared, ALLOCATE)
    assert [(each.share, each.message) for each in program] == [(each.share, each.message) for each in python]
    assert sum(each.share for each in program) > len(tests) / 2


@pytest.mark.long
@pytest.mark.parametrize("path", EXPLOITS, ids=lambda path: path.stem)
def test_an_exploit_as_a_program_earns_nothing_and_leaves_nothing(
    path: Path, jail: Jail, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "CALL", 0.5)
    monkeypatch.setattr(child, "BY_THE_CLOCK", 2)
    monkeypatch.setattr(child, "PATIENCE", 1)
    mark = f"tpucc-filler-program-{os.getpid()}"
    text = f"{PYTHON}{written_as(mark, path)}".replace("def __getattr__(", "def found_by_name(")
    called = CALLS.replace("allocate(", "found_by_name('allocate')(")
    assert [each.share for each in outcomes(jail, shared, text + called, every=4)] == [0, 0, 0]
    assert left_behind() == []
    assert not list(Path("/tmp").glob(f"{mark}*"))


SEES = f"""{PYTHON}
import os
import socket


def reaches(what):
    try:
        what()
        return True
    except OSError as error:
        return str(error)


def allocate(lives, rows):
    return [
        reaches(lambda: socket.create_connection(("127.0.0.1", int(PORT)), 1)),
        reaches(lambda: open("/usr/lib/harm", "w")),
        reaches(lambda: open(REFERENCE)),
        reaches(lambda: os.listdir(GRADER)),
        reaches(lambda: open(os.path.abspath(__file__), "a")),
        len([name for name in os.listdir("/proc") if name.isdigit()]),
    ]
{CALLS}"""


@pytest.mark.long
def test_a_program_sees_no_more_than_a_function(jail: Jail, shared: Path, tmp_path: Path) -> None:
    """Without a jail it reaches the network, a folder and the grader's files."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {"PORT": server.getsockname()[1], "REFERENCE": str(reference(LAB)), "GRADER": str(LAB.folder)}
        text = SEES
        for name, value in values.items():
            text = text.replace(name, repr(value))
        free, _ = reached(NONE, shared, text.replace("/usr/lib/harm", str(tmp_path / "harm")))
        jailed, processes = reached(jail, shared, text)
    assert free[:4] == [True] * 4
    assert not any(found is True for found in jailed), jailed
    assert processes <= 5  # of the jail alone


def reached(jail: Jail, shared: Path, text: str) -> tuple[list[object], int]:
    with cell(shared, {LAB.program: text.encode()}, LAB.program) as made, Child(jail, made, LAB.modules) as submission:
        *found, processes = submission.call("allocate", *example())
    return found, processes


def example() -> tuple[object, int]:
    """What the lab asks first."""
    asked: list[tuple[object, int]] = []

    class Noted:
        def call(self, function: str, *arguments: object, seconds: float | None = None) -> object:
            asked.append(arguments)  # type: ignore[arg-type]
            raise Failed("ended", "noted")

    run(LAB.public(AS_WRITTEN)[0], Noted())  # type: ignore[arg-type]
    return asked[0]


@pytest.mark.usefixtures("made_before")
def test_a_program_beside_the_file_is_checked_in_its_place(tmp_path: Path) -> None:
    """Whether it can be executed or not: what was in an archive can't."""
    folder = tmp_path / "mine"
    start(LAB, folder)
    skeleton = check(LAB, folder, only=("three buffers", "random lives"))
    (folder / LAB.program).write_text(f"{PYTHON}print('found nothing', file=sys.stderr)\nsys.exit(4)\n")
    ended = check(LAB, folder, only=("three buffers",))
    assert [result.outcome.message for result in ended.results] == ["allocate: ended with exit status 4; 0 says that there is an answer"]
    assert ended.results[0].printed == "found nothing\n"
    (folder / LAB.program).write_text(ALLOCATE)
    found = check(LAB, folder, only=("three buffers", "random lives"))
    assert found.score == found.most == 10
    assert len({skeleton.digest, ended.digest, found.digest}) == 3
    assert found.spent > 0.01  # the time of the programs counts


def test_a_program_alone_is_a_submission(tmp_path: Path) -> None:
    (tmp_path / LAB.program).write_text(ALLOCATE)
    contents = contents_of(LAB, tmp_path / LAB.program, AS_WRITTEN)
    assert (contents.main, list(contents.files)) == (LAB.program, [LAB.program])
    other = find("passes")
    assert contents_of(other, tmp_path / LAB.program, AS_WRITTEN).files == {}


def test_a_program_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / LAB.program).symlink_to("/etc/passwd")
    assert contents_of(LAB, tmp_path, AS_WRITTEN).problem == f"{LAB.program} is a link; a submission is made of regular files"


@pytest.mark.long
def test_mine_takes_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(LAB, tmp_path / "five")
    assert [part.state for part in parts_in(tmp_path) if part.lab is LAB] == ["tpucc's: not begun"]
    (tmp_path / "five" / LAB.program).write_text(ALLOCATE)
    (tmp_path / "five" / LAB.program).chmod(0o755)
    assert [(part.state, part.place.name) for part in parts_in(tmp_path) if part.lab is LAB] == [("yours", LAB.program)]
    try:
        assert command("lab", "mine", tmp_path) == 0
    finally:
        CHILD.close()
    assert "yours" in capsys.readouterr().out
