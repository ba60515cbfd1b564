"""Isolation: what submissions that mean harm get, in every jail that works here, and what they leave behind."""

from __future__ import annotations

import csv
import errno
import itertools
import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.cases import one_of
from tests.support.lab_results import SEED
from tests.support.lab_solutions import jailed, main_file
from tests.support.package_copies import keep_compiled, plain_environment
from tpucc.cli import lab_grading
from tpucc.cli.main import main
from tpucc.diagnostics import UsageError
from tpucc.guest import jails, leftover_files, limits, values
from tpucc.guest.jails import JAILS, Cell, Jail, probed
from tpucc.labs import cells, child, classes, find, grading, labs, workers
from tpucc.labs.cells import cell, workshop
from tpucc.labs.child import Child
from tpucc.labs.grading import run
from tpucc.labs.lab import AS_WRITTEN, Lab, Outcome
from tpucc.labs.submissions import Variants, submitted
from tpucc.plugins.failures import Failed

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parent / "exploits"
EXPLOITS = sorted(FOLDER.glob("*.py"))
BUILT_IN = [(lab, path) for lab in labs() for path in jailed(lab)]
LAB = find("allocation")
CELLS: list[str] = []
"""The names of all cells so far."""
posix = pytest.mark.skipif(os.name != "posix", reason="jails are POSIX's")


def points(jail: Jail, shared: Path, text: str, lab: Lab = LAB, every: int = 1) -> float:
    """What a submission earns with all tests of a lab, or with one of `every` so many."""
    with cell(shared, {lab.file: lab.filled(text, AS_WRITTEN).encode()}, lab.file) as made, Child(jail, made, lab.modules) as submission:
        CELLS.append(made.submission.name)
        return sum(run(test, submission).score for test in (*lab.public(AS_WRITTEN), *lab.hidden(AS_WRITTEN, SEED))[::every])


def run_here(_: object, asked: bytes) -> tuple[bytes, str]:
    """A class's grader in this process."""
    lines: list[bytes] = []
    workers.grade_one(pickle.loads(asked), lines.append)
    return b"".join(lines), ""


def run_here_bombs_shortly(_: object, asked: bytes) -> tuple[bytes, str]:
    """`run_here`, in which the processes of a fork bomb, which share the processor, have no more time by the clock than one would need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "BY_THE_CLOCK", 1 if b"def bomb(" in asked else 5)
        return run_here(_, asked)


def written_as(mark: str, path: Path) -> str:
    """An exploit whose files in shared folders bear `mark`: tests that run beside each other don't see each other's."""
    return path.read_text("utf-8").replace("tpucc-lab-filler", mark)


@posix
@pytest.mark.parametrize("path", EXPLOITS, ids=lambda path: path.stem)
def test_an_exploit_earns_nothing_and_leaves_nothing(path: Path, jail: Jail, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "CALL", 0.5)
    monkeypatch.setattr(child, "BY_THE_CLOCK", 1)
    monkeypatch.setattr(child, "PATIENCE", 1)
    mark = f"tpucc-filler-alone-{os.getpid()}"
    assert points(jail, shared, written_as(mark, path), every=4) == 0
    assert left_behind() == []
    assert not list(Path("/tmp").glob(f"{mark}*"))


@posix
@pytest.mark.soak
@pytest.mark.parametrize("path", EXPLOITS, ids=lambda path: path.stem)
@pytest.mark.parametrize("lab", [lab for lab in labs() if lab.functions], ids=lambda lab: lab.name)
def test_an_exploit_of_the_grader_gets_the_floor_of_every_lab(
    lab: Lab, path: Path, jail: Jail, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "CALL", 1.0)
    monkeypatch.setattr(child, "PATIENCE", 1)
    assert points(jail, shared, path.read_text("utf-8"), lab) <= lab.floor
    assert left_behind() == []


@pytest.mark.parametrize(("lab", "path"), one_of(3, BUILT_IN), ids=lambda value: value.name)
def test_a_child_has_no_solution_of_tpuccs_own(lab: Lab, path: Path, shared: Path) -> None:
    assert points(jails.NONE, shared, path.read_text("utf-8"), lab) <= lab.floor


TEN = {
    "anna": main_file(LAB),
    "ben.py": main_file(LAB, "first_fit_in_time"),
    "children.py": FOLDER / "leaves_children.py",
    "endless.py": FOLDER / "endless.py",
    "files.py": FOLDER / "four_gigabytes_of_files.py",
    "forks.py": FOLDER / "fork_bomb.py",
    "memory.py": FOLDER / "four_gigabytes_of_memory.py",
    "reads.py": FOLDER / "reads_the_reference.py",
    "skeleton.py": LAB.material("skeleton.py", AS_WRITTEN),
    "syntax.py": "def allocate(:",
}
"""Submissions by their names: the text, or the file of an exploit."""


@posix
@pytest.mark.soak
@pytest.mark.parametrize("whole", [False, True], ids=["small limits", "whole"])
def test_ten_submissions_in_one_class(whole: bool, jail: Jail, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that one does stops the others. Whole, each has a grader of its own and the real limits; else they share one process."""
    if not whole:
        monkeypatch.setattr(child, "CALL", 1.0)
        monkeypatch.setattr(child, "PATIENCE", 1)
        monkeypatch.setattr(grading, "workshop", lambda _: nullcontext(shared))
        monkeypatch.setattr(lab_grading, "isolated", lambda: jail)
        monkeypatch.setattr(workers.Graders, "_run", run_here_bombs_shortly)
    folder, into, mark = tmp_path / "class", tmp_path / "results", f"tpucc-filler-class-{os.getpid()}"
    folder.mkdir()
    for name, source in TEN.items():
        text = written_as(mark, source) if isinstance(source, Path) else source
        place = folder / name if name.endswith(".py") else folder / name / LAB.file
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    words = ["lab", "grade", "--all", str(folder), "--lab", "5", "--seed", str(SEED), "--into", str(into), "--jobs", "2" if whole else "1"]
    assert main(words) == 0
    rows = {row["name"]: row for row in csv.DictReader(into.with_name("results.csv").read_text("utf-8").splitlines())}
    assert list(rows) == sorted(TEN)
    scores = {name: float(row["score"]) for name, row in rows.items()}
    assert scores["anna"] == 100
    assert 50 < scores["ben.py"] < 90
    assert {name for name, score in scores.items() if not score} == set(TEN) - {"anna", "ben.py"}
    tests = [test.name for test in (*LAB.public(AS_WRITTEN), *LAB.hidden(AS_WRITTEN, SEED))]
    for name, row in rows.items():
        assert round(sum(float(row[test]) for test in tests), 2) == scores[name]
        assert json.loads((into / f"{name}.json").read_text("utf-8"))["extra_data"]["complete"]
    assert "SyntaxError" in rows["syntax.py"]["problem"]
    assert left_behind() == []
    assert not list(Path("/tmp").glob(f"{mark}*"))


def left_behind() -> list[str]:
    """Processes that a jail should have ended; they may take a moment to go."""
    for _ in range(100):
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
        if not (found := [line for line in listed if "guest/start.py" in line and any(name in line for name in CELLS)]):
            return []
        time.sleep(0.05)
    return found


@posix
@pytest.mark.parametrize(("lab", "path"), one_of(3, BUILT_IN), ids=lambda value: value.name)
def test_what_a_lab_asks_for_is_out_of_reach(lab: Lab, path: Path, jail: Jail, shared: Path) -> None:
    """In a jail as without one, where all of these run."""
    assert points(jail, shared, path.read_text("utf-8"), lab) <= lab.floor


@posix
def test_what_does_not_load_in_time_is_not_loaded_again(jail: Jail, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "START", 0.8)
    with cell(shared, {LAB.file: b"while True:\n    pass\n"}, LAB.file) as made, Child(jail, made, LAB.modules) as submission:
        for says in ("loading the file: takes longer than 0.8 s", "not asked"):
            with pytest.raises(Failed, match=says):
                submission.call("allocate")


@posix
def test_the_reference_gets_all_points_in_a_jail(jail: Jail, shared: Path) -> None:
    assert points(jail, shared, main_file(LAB)) == 100


SEES = """
import os, socket
def where():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
        network = True
    except OSError:
        network = False
    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    open_to_us = [os.access(PATH, os.R_OK), os.access(__file__, os.W_OK)]
    return [os.getuid(), len(processes), network, sorted(os.environ), *open_to_us, os.listdir("/usr")]
def keeps():
    global count
    count = globals().get("count", 0) + 1
    return count
def prints():
    print("one")
    raise ValueError("two")
""".replace("PATH", repr(str(jails.grader_folder() / "labs")))


@posix
@pytest.mark.parametrize("kind", JAILS, ids=lambda kind: kind.name)
def test_what_a_child_sees(kind: Jail, shared: Path) -> None:
    with cell(shared, {"sees.py": SEES.encode()}, "sees.py") as made:
        found = probed(kind, made)
        if not found.works:
            pytest.skip(f"{kind.name}: {found.reason}")
        with Child(kind, made, ()) as submission:
            user, processes, network, names, secret, writable, listed = submission.call("where")
    assert user != 0
    assert not secret
    assert not writable
    assert not any("TPUCC" in name or "HOME" in name for name in names)
    if kind.name != "user":
        assert processes <= 3
        assert not network
        assert set(listed) <= {"bin", "lib", "lib64", "local"}, "courses may lie below /usr"


def test_a_child_answers_prints_and_is_replaced_when_it_ends(shared: Path) -> None:
    with cell(shared, {"sees.py": SEES.encode()}, "sees.py") as made, Child(jails.NONE, made, ()) as submission:
        assert submission.defines() == ("keeps", "prints", "where")
        assert [submission.call("keeps") for _ in range(2)] == [1, 2]
        with pytest.raises(Failed, match="two") as caught:
            submission.call("prints")
        line = SEES[: SEES.index("raise")].count("\n") + 1
        assert caught.value.words == f'sees.py:{line}: ValueError: two\n  sees.py:{line} in prints: raise ValueError("two")'
        with pytest.raises(Failed, match="defines no function other"):
            submission.call("other")
        submission.close()
        assert [submission.printed(), submission.printed()] == ["one\n", ""]
        assert submission.call("keeps") == 1


def test_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "allocation.py").symlink_to("/etc/passwd")
    with pytest.raises(Failed, match="is a link"):
        submitted(tmp_path)


def test_the_users_of_cells_differ(shared: Path) -> None:
    with cell(shared, {}, "") as one, cell(shared, {}, "") as two:
        assert one.user == two.user == -1 or one.user != two.user
    assert isinstance(one, Cell)


@posix
def test_graders_that_take_turns_alike_take_other_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jail ends all processes of its user. Where somebody else has made the folder of locks, nothing is graded."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(os, "getpid", lambda: 0)
    taken = []
    with ExitStack() as graders:
        for _ in range(3):
            monkeypatch.setattr(cells, "_TURNS", iter(range(3995, 4005)))
            taken.append(graders.enter_context(cells.user_number()))
    assert taken == [jails.FIRST_USER + turn for turn in (3995, 3996, 3997)]
    monkeypatch.setattr(cells, "_TURNS", iter(range(4000, 4005)))
    with cells.user_number() as again:
        assert again == jails.FIRST_USER
    (tmp_path / "tpucc-users").chmod(0o777)
    with pytest.raises(UsageError, match="isn't the grader's own"), cells.user_number():
        pass


@posix
def test_no_child_can_read_or_list_the_cells_of_others(shared: Path) -> None:
    """A cell's group is its child's user, who owns nothing there."""
    with cell(shared, {"a/b.py": b""}, "a/b.py") as made:
        assert [stat.S_IMODE(place.stat().st_mode) for place in (shared, shared / "cells")] == [0o711, 0o711]
        for place, mode in ((made.submission, 0o750), (made.submission / "a", 0o750), (made.submission / "a" / "b.py", 0o640)):
            found = place.stat()
            assert (stat.S_IMODE(found.st_mode), found.st_uid) == (mode, os.getuid())
            assert found.st_gid == (made.user if made.user >= 0 else os.getgid())


@posix
def test_a_jail_of_file_modes_needs_folders_that_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "class"
    folder.mkdir(mode=0o755)
    assert jails.OtherUser().reaches(folder) == all(above.stat().st_mode & 1 for above in folder.parents)
    assert not jails.Bubblewrap().reaches(folder)
    folder.chmod(0o700)
    assert not jails.OtherUser().reaches(folder)
    monkeypatch.setattr(jails, "_open_to_others", lambda _: True)
    table = tmp_path / "grades.csv"
    lab_grading.require_closed(jails.OtherUser(), [table], [Path()])
    for mode, closed in ((0o600, True), (0o644, False)):
        table.touch()
        table.chmod(mode)
        with nullcontext() if closed else pytest.raises(UsageError, match=r"submissions could read .*/grades\.csv"):
            lab_grading.require_closed(jails.OtherUser(), [table], [Path()])
    monkeypatch.setattr(jails.OtherUser, "reaches", lambda *_: True)
    with pytest.raises(UsageError, match="submissions could read"):
        lab_grading.require_closed(jails.OtherUser(), [folder])


@posix
def test_one_submission_is_graded_only_where_it_cannot_read_those_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bob", "eve", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ("notes.md" if name == "other" else LAB.file)).write_text("")
    assert lab_grading.beside(tmp_path / "eve", LAB) == [tmp_path / "bob"]
    monkeypatch.setattr(lab_grading, "isolated", jails.OtherUser)
    (tmp_path / "dan.py").write_text("")
    monkeypatch.setattr(lab_grading, "grade", lambda *_: pytest.fail("it was graded"))
    for readable in ("bob", "dan.py"):
        monkeypatch.setattr(jails.OtherUser, "reaches", lambda _, place, name=readable: place.name == name)
        assert main(["lab", "grade", str(tmp_path / "eve"), "--lab", "5", "--seed", "1"]) == 2


@posix
@pytest.mark.parametrize("kind", JAILS[:2], ids=lambda kind: kind.name)
def test_no_course_lies_where_jails_show_the_interpreter(kind: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the system, jails show programs and libraries: what lies there is refused, and the grader's own checkout covered."""
    for folder in ("bin", "lib/class", "lib/checkout/tpucc", "src/class"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "lib/checkout/pyproject.toml").touch()
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(jails, "grader_folder", lambda: tmp_path / "lib/checkout/tpucc")
    assert str(tmp_path / "lib/checkout") in jails.hidden()
    with pytest.raises(UsageError, match=f"with the isolation {kind.name}, submissions could read .*/lib/class"):
        lab_grading.require_closed(kind, [], [tmp_path / "src" / "class", tmp_path / "lib" / "class" / "new"])
    lab_grading.require_closed(kind, [tmp_path / "src" / "class", tmp_path / "lib" / "checkout" / "class"])


def test_the_seed_draws_the_inputs_of_public_tests_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grade is the same with the same seed; checking draws the same every time."""
    puzzles, seeds = find("puzzles"), list[int]()
    monkeypatch.setattr(grading, "run", lambda test, _, seed: (seeds.append(seed), grading.Result(test, Outcome(0, ""), 0.0))[1])
    for given in (1, 1, 2):
        grading.grade(puzzles, tmp_path, AS_WRITTEN, given, jails.NONE, ("puzzle 1",))
    grading.check(puzzles, tmp_path, AS_WRITTEN, ("puzzle 1",))
    assert seeds[0] == seeds[1] != seeds[2] != seeds[3] == 0


def test_no_graders_command_has_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of a machine can list commands."""
    asked: list[list[str]] = []

    def noted(words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        asked.append(words)
        return popen([sys.executable, "-c", "import sys; sys.exit('nothing')"], **options)

    popen = subprocess.Popen
    monkeypatch.setattr(workers.subprocess, "Popen", noted)
    monkeypatch.setattr(classes, "workshop_of", lambda _: nullcontext())
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "anna.py").write_text("")
    (row,) = classes.grade_all(Variants(LAB, AS_WRITTEN), tmp_path / "class", 987654321, tmp_path / "results", jails.NONE)
    assert asked == [[sys.executable, "-P", "-m", "tpucc.labs.workers"]]
    assert row.problem == "nothing"
    assert "--seed" not in (Path(classes.__file__).parent / "gradescope" / "run_autograder").read_text("utf-8")


GARBAGE = b"""
import os
def f():
    for place in range(3, 64):
        try:
            os.write(place, b"\\xff" * 8)
        except OSError:
            pass
"""


@posix
def test_what_cannot_be_read_ends_its_process(jail: Jail, shared: Path) -> None:
    """Else each later call would wait for as long as it may."""
    with cell(shared, {"f.py": GARBAGE}, "f.py") as made, Child(jail, made, ()) as submission:
        submission.load()
        with pytest.raises(Failed, match=r"^f: gave an answer that can't be read$"):
            submission.call("f")
        assert not submission._process.is_there


@posix
def test_no_two_submissions_in_turn_have_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in copies of one process, nor while processes of the number are there: these count among those that the next one may have."""
    taken = list[int]()
    for number in (70_001, 70_002):
        monkeypatch.setattr(cells, "_TURNS", itertools.count())
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        with cells.user_number() as user:
            taken.append(user)
    monkeypatch.setattr(cells, "_TURNS", itertools.count())
    monkeypatch.setattr(cells, "_has_processes", lambda user: user == taken[1])
    with cells.user_number() as user:
        taken.append(user)
    assert len(set(taken)) == 3
    monkeypatch.undo()
    assert cells._has_processes(os.getuid())
    assert not cells._has_processes(2**31 - 7)


WAITS_FOR_EVER = """
import signal, time
def allocate(lives, rows):
    for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
    while True:
        time.sleep(1)
"""


def _processes() -> dict[int, tuple[int, str]]:
    """The parents and the commands of all processes that haven't ended, by their numbers."""
    listed = subprocess.run(["ps", "-ewwo", "pid,ppid,stat,args"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    rows = (line.split(None, 3) for line in listed)
    return {int(number): (int(parent), words) for number, parent, state, words in rows if not state.startswith("Z")}


def _started_by(number: int) -> dict[int, str]:
    """The commands of all that a process has started, and what these have."""
    processes, found, begun = _processes(), dict[int, str](), {number}
    while begun:
        begun = {each for each, (parent, _) in processes.items() if parent in begun}
        found |= {each: processes[each][1] for each in begun}
    return found


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("number", "status"), [("SIGTERM", 130), ("SIGKILL", -9)])
@posix
def test_the_end_of_a_class_grader_ends_all_that_it_started(number: str, jobs: int, status: int, tmp_path: Path) -> None:
    """Workers, the graders of single submissions, and submissions; their workshops are taken away."""
    (tmp_path / "class").mkdir()
    for name in ("anna", "ben"):
        (tmp_path / "class" / f"{name}.py").write_text(WAITS_FOR_EVER)
    words = ["lab", "grade", "--all", "class", "--lab", "5", "--jobs", str(jobs), "--trust", "--seed", str(2**40)]
    grader = subprocess.Popen(
        [sys.executable, "-m", "tpucc", *words],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    started: dict[int, str] = {}
    while sum("guest/start.py" in words and '"warm": false' in words for words in started.values()) < jobs:
        assert grader.poll() is None
        time.sleep(0.1)
        started = _started_by(grader.pid)
    grader.send_signal(signal.Signals[number])
    assert grader.wait() == status
    late = time.monotonic() + 30
    while (left := {each: words for each, (_, words) in _processes().items() if started.get(each) == words}) and time.monotonic() < late:
        time.sleep(0.1)
    assert not left
    assert not list(tmp_path.glob("tpucc-lab-*"))


AS_OTHER_USER = """
import subprocess
import sys
from pathlib import Path
from tpucc.labs import child, find
from tpucc.labs.cells import cell, workshop
from tpucc.labs.child import Child
from tpucc.labs.grading import run
from tpucc.guest.jails import OtherUser, probed
from tpucc.labs.lab import AS_WRITTEN
child.CALL = 1.0
lab, jail = find("allocation"), OtherUser()
with workshop(lab.modules) as shared:
    for path in sys.argv[1:]:
        with cell(shared, {lab.file: Path(path).read_bytes()}, lab.file) as made:
            if not (found := probed(jail, made)).works:
                sys.exit(f"skip: {found.reason}")
            child.BY_THE_CLOCK = 1 if path.endswith("bomb.py") else 5
            with Child(jail, made, lab.modules) as submission:
                print(sum(run(test, submission).score for test in lab.public(AS_WRITTEN)[:2]))
            listed = subprocess.run(["ps", "-eo", "uid,stat,args"], capture_output=True, text=True).stdout.splitlines()
            left = [line for line in listed if line.split()[0] == str(made.user)]
            left = [line for line in left if not line.split()[1].startswith("Z") and "[" not in line]  # in brackets: it is ending
            assert not left, left
"""


@pytest.mark.soak
@posix
def test_another_user_keeps_secrets_where_the_graders_folder_is_closed(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The package is copied into a folder that only its owner can enter, as on Gradescope."""
    closed = tmp_path / "closed"
    shutil.copytree(jails.grader_folder(), closed / "tpucc")
    keep_compiled(closed / "tpucc")
    closed.chmod(0o700)
    (tmp_path / "solution.py").write_text(main_file(LAB))
    names = (
        "leaves_children",
        "reads_the_reference",
        *(("four_gigabytes_of_files", "fork_bomb") if pytestconfig.getoption("soak") else ()),
    )
    mark = f"tpucc-filler-other-{os.getpid()}"
    for name in names:
        (tmp_path / f"{name}.py").write_text(written_as(mark, EXPLOITS[0].with_name(f"{name}.py")))
    words = [sys.executable, "-c", AS_OTHER_USER, str(tmp_path / "solution.py"), *(str(tmp_path / f"{name}.py") for name in names)]
    done = subprocess.run(words, env=plain_environment(closed), capture_output=True, text=True, timeout=200, cwd=tmp_path)
    if done.stderr.startswith("skip: "):
        pytest.skip(done.stderr[6:])
    assert done.returncode == 0, done.stderr
    assert [float(line) for line in done.stdout.split()] == [10, *(0 for _ in names)]
    assert not list(Path("/tmp").glob(f"{mark}*"))


@pytest.mark.parametrize(("name", "hours", "gone"), [("tpucc-lab-old", 25, True), ("tpucc-lab-new", 23, False), ("other-lab", 25, False)])
@posix
def test_what_killed_graders_left_is_cleaned(name: str, hours: int, gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day later; links and files of such a name are left alone."""
    monkeypatch.setattr(cells.tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / name
    folder.mkdir()
    (folder / "left").write_text("x")
    (tmp_path / "tpucc-lab-link").symlink_to(folder)
    (tmp_path / "tpucc-lab-file").write_text("x")
    then = time.time() - 3600 * hours
    for path in (folder, tmp_path / "tpucc-lab-file"):
        os.utime(path, (then, then))
    cells.clean()
    assert folder.exists() is not gone
    assert (tmp_path / "tpucc-lab-link").is_symlink()
    assert (tmp_path / "tpucc-lab-file").exists()


def test_a_workshop_cleans_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(cells, "clean", lambda: asked.append(True))
    monkeypatch.setattr(cells, "_warm", lambda *_: None)
    monkeypatch.setattr(cells, "copy_stripped", lambda *_: None)
    with workshop(()):
        assert asked == [True]


FORGED = """
import os
def forge(kind):
    data = {"deep": b"\x81\xa5value" + b"\x91" * 100_000, "nested": b"\x81\xa5value" + b"\x91" * 900 + b"\x90",
            "said": b"\x81\xa7message" + b"\x91" * 960 + b"\xc0",
            "type": b"\x81\xa5value\x83\xa5dtype\xaf(1,,2)i4,i4    \xa5shape\x91\x00\xa4data\xc4\x00"}[kind]
    os.write(3, len(data).to_bytes(8, "big") + data)
    os.write(4, len(data).to_bytes(8, "big") + data)
"""


@pytest.mark.parametrize("kind", ["deep", "nested", "said", "type"])
def test_a_forged_answer_is_no_fault_of_the_grader(kind: str, shared: Path) -> None:
    with cell(shared, {"f.py": FORGED.encode()}, "f.py") as made, Child(jails.NONE, made, ()) as submission, pytest.raises(Failed):
        submission.call("forge", kind, seconds=5)


LONG = b"""
import os, msgspec
data = msgspec.msgpack.encode({"kind": "E" * 9000, "message": "x" * 9000, "left_out": 2**63,
                               "frames": [["A" * 40_000, 1, "f" * 9000]] * 10})
os.write(4, len(data).to_bytes(8, "big") + data)
"""


def test_no_text_of_a_childs_is_long(shared: Path) -> None:
    with cell(shared, {"f.py": LONG}, "f.py") as made, Child(jails.NONE, made, ()) as submission, pytest.raises(Failed) as caught:
        submission.load()
    assert len(caught.value.words) < 10_000
    assert len(caught.value.kind) == len(caught.value.frames[0].file) == len(caught.value.frames[0].function) == 200
    assert caught.value.left_out == 10**6


READS_NOTHING = b"""
import os, time, msgspec
for _ in range(50):
    data = msgspec.msgpack.encode({"value": [], "cpu": 0.0})
    os.write(4, len(data).to_bytes(8, "big") + data)
time.sleep(60)
"""


def test_a_child_that_reads_nothing_holds_up_nobody(shared: Path) -> None:
    """It has answered before it was asked: no answer counts to a question that isn't read."""
    begun = time.monotonic()
    with cell(shared, {"f.py": READS_NOTHING}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        submission.load()
        with pytest.raises(Failed, match=r"takes longer than 0\.5 s by the clock"):
            submission.call("f", b"x" * 2**20, seconds=0.1)
    assert time.monotonic() - begun < 30


CALLS = b"""
import ctypes, os, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
number, flags = ctypes.c_ulong(2**20), {"newuser": 0x10000000, "newns": 0x20000}
clone, clone3 = {"x86_64": (56, 435), "aarch64": (220, 435)}[os.uname().machine]
tried = {
    "shmget": lambda: libc.shmget(0, number, 0o1600), "semget": lambda: libc.semget(0, 1, 0o1600), "msgget": lambda: libc.msgget(0, 0o1600),
    "memfd_create": lambda: libc.memfd_create(b"x", 0), "unshare": lambda: libc.unshare(flags["newuser"]),
    "clone": lambda: libc.syscall(clone, flags["newuser"] | 17, 0, 0, 0, 0), "clone3": lambda: libc.syscall(clone3, 0, 0),
    "io_uring_setup": lambda: libc.syscall(425, 1, 0), "vsock": lambda: libc.socket(40, 1, 0), "netlink": lambda: libc.socket(16, 3, 0),
}
def errors():
    return {name: ctypes.get_errno() if call() < 0 else 0 for name, call in tried.items()}
def capabilities():
    return [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")]
def works():
    socket.socket(socket.AF_UNIX).close(); socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    threads = [threading.Thread(target=print, args=("thread",)) for _ in range(3)]
    for thread in threads:
        thread.start(); thread.join()
    return subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout
"""


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine not in limits.MACHINES, reason="Linux's calls, by their numbers")
def test_what_outlives_a_process_or_has_no_limit_is_refused(shared: Path) -> None:
    """Shared memory beyond the limit of memory, what the next submission would find, and a user with all capabilities."""
    with cell(shared, {"f.py": CALLS}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        assert submission.call("errors") == {name: errno.ENOSYS if name == "clone3" else errno.EPERM for name in submission.call("errors")}
        assert submission.call("works") == "1\n"
        assert submission.printed() == "thread\n" * 3


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's capabilities")
def test_a_child_has_no_capability_and_can_get_none(jail: Jail, shared: Path) -> None:
    with cell(shared, {"f.py": CALLS}, "f.py") as made, Child(jail, made, ()) as submission:
        inherited, permitted, effective, bounding, ambient = submission.call("capabilities")
        assert {inherited, permitted, effective, ambient} == {"0" * 16}
        assert bounding == "0" * 16 or os.getuid() != 0


def test_a_jail_without_namespaces_needs_the_refusal_of_shared_memory() -> None:
    for jail in JAILS:
        said = msgspec.msgpack.encode({"value": {"readable": [], "others": 0, "network": False, "filtered": False}})
        found = jails._judged(jail, subprocess.CompletedProcess([], 0, bytes(8) + said, b""))
        assert (found.works, found.filtered) == (jail.name != "user", False)


def test_an_exception_that_is_called_as_a_limit_is_one_is_no_limit(shared: Path) -> None:
    code = b"class time(Exception): pass\ndef f(): raise time('processor')"
    with cell(shared, {"f.py": code}, "f.py") as made, Child(jails.NONE, made, ()) as submission, pytest.raises(Failed) as caught:
        submission.call("f")
    assert (caught.value.kind, caught.value.message) == ("class time", "processor")


VALUES = [None, True, -1, 200, 70_000, 2**40, -200, -70_000, -(2**40), 0.5]
VALUES += [kind * size for kind in ("x", b"x") for size in (0, 40, 300, 70_000)]
VALUES += [msgspec.msgpack.Ext(1, b"x" * size) for size in (1, 2, 4, 8, 16, 17, 300, 70_000)]


def test_the_values_of_an_answer_are_counted_before_they_are_made() -> None:
    """A value that is measured wrong hides the list behind it. The most that a submission's own result has is sent in fewer."""
    for number, value in enumerate(VALUES):
        for size in (3, 300, 70_000) if number % 4 == 0 else (3, 300):
            answer = [{"value": value}, [None] * size]
            assert values.fits(msgspec.msgpack.encode([answer, 1]), size + 6) is False
            assert values.fits(msgspec.msgpack.encode(answer), size + 6) is True
    most = values.SENT * values.MOST
    assert values.fits(b"\x81\xa5value\xdd\xff\xff\xff\xff", most) is False
    assert values.fits(msgspec.msgpack.encode({"value": values.packed(dict.fromkeys(range(99_000), 0))}), most) is True
    with pytest.raises(Failed, match="more than 800,000 values"):
        values.decoded(msgspec.msgpack.encode({"value": [[]] * 2**20}))


def test_all_calls_together_have_a_budget(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cell(shared, {"f.py": b"def f(): pass"}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        submission.call("f")
        monkeypatch.setattr(child, "BUDGET", 0.0)
        with pytest.raises(Failed, match="all calls together have 0 s of processor time, and 0 s by the clock"):
            submission.call("f")


@pytest.mark.soak
def test_loading_again_takes_no_more_than_what_is_left_of_the_budget(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission whose calls end its process, and which waits long while it is loaded, doesn't have a new start's time each call."""
    dies = b"import os, time\ntime.sleep(1.5)\ndef f(): os._exit(0)"
    monkeypatch.setattr(child, "BY_THE_CLOCK", 1)
    with cell(shared, {"f.py": dies}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        with pytest.raises(Failed, match=r"^f: calls os\._exit, which ends its process$"):
            submission.call("f")
        monkeypatch.setattr(child, "BUDGET", submission._waited + 0.2)
        with pytest.raises(Failed, match="loading the file: takes longer"):
            submission.call("f")


def test_a_call_takes_no_more_than_what_is_left_of_the_budget(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that are all nearly too long don't add up: neither those that compute nor those that wait."""
    for body, budget, limit in (("time.sleep(9)", 0.2, "1 s by the clock"), ("\n while True: pass", 0.3, "0.3 s of processor time")):
        monkeypatch.setattr(child, "BUDGET", budget)
        slow = f"import time\ndef f(): {body}".encode()
        with cell(shared, {"f.py": slow}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
            with pytest.raises(Failed, match=rf"f: was stopped there: the {limit} of all calls together are used up"):
                submission.call("f")
            with pytest.raises(Failed, match=rf"all calls together have {budget} s of processor time"):
                submission.call("f")


@posix
def test_waiting_counts_less_than_computing(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine lets a right submission wait: that costs it nothing up to the limit by the clock."""
    monkeypatch.setattr(child, "CALL", 0.3)
    monkeypatch.setattr(child, "BY_THE_CLOCK", 300)
    slow = b"import time\ndef f():\n  time.sleep(0.6)\n  return 1"
    with cell(shared, {"f.py": slow}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        assert submission.call("f") == 1


@posix
def test_a_call_that_waits_for_what_never_comes_is_ended_soon(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It doesn't hold the grader for all of the time that a busy machine has; after three, nothing is asked. One that computes goes on."""
    monkeypatch.setattr(child, "WAITING", 0.1)
    slow = (
        b"import time\ndef f(): time.sleep(50)\ndef g():\n  for _ in range(6):\n    sum(range(200_000))\n    time.sleep(0.05)\n  return 1"
    )
    with cell(shared, {"f.py": slow}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        assert submission.call("g") == 1
        for _ in range(child.PATIENCE):
            with pytest.raises(Failed, match=r"^f: waits and computes nothing for 0\.1 s, and was stopped there$") as caught:
                submission.call("f")
            assert caught.value.kind == "time"
        with pytest.raises(Failed, match="not asked: 3 calls of f took too long"):
            submission.call("f")
        assert submission.call("g") == 1, "another function is still asked"
        assert submission._waited < 10


@posix
def test_a_call_that_has_computed_and_then_waits_is_ended_soon(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it computed at first doesn't give it all of the time by the clock."""
    monkeypatch.setattr(child, "WAITING", 0.2)
    slow = b"import time\ndef f():\n  while time.process_time() < 0.3: pass\n  time.sleep(50)"
    with cell(shared, {"f.py": slow}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        with pytest.raises(Failed, match=r"^f: waits and computes nothing for 0\.2 s"):
            submission.call("f")
        assert submission._waited < 10


@posix
def test_a_call_that_a_busy_machine_gives_no_time_does_not_wait(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its processor time such a call computes nothing, but it never sleeps."""
    monkeypatch.setattr(child, "WAITING", 0.1)
    monkeypatch.setattr(child, "CALL", 0.4)
    starved = b"import time\ndef f():\n  time.process_time = lambda: 0.0\n  while True: pass"
    late = pytest.raises(Failed, match=r"^f: takes longer than 0\.4 s of processor time, and was stopped there$")
    with cell(shared, {"f.py": starved}, "f.py") as made, Child(jails.NONE, made, ()) as submission, late:
        submission.call("f")


@posix
def test_what_no_line_of_python_ends_is_ended_by_the_kernel(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a second more, and is told as what takes too long."""
    monkeypatch.setattr(child, "CALL", 0.1)
    monkeypatch.setattr(child, "BY_THE_CLOCK", 300)
    slow = b"import itertools\ndef f(): return sum(itertools.repeat(1))"
    with cell(shared, {"f.py": slow}, "f.py") as made, Child(jails.NONE, made, ()) as submission:
        with pytest.raises(Failed, match=r"^f: takes longer than 0\.1 s of processor time, and was stopped there$") as caught:
            submission.call("f")
        assert caught.value.kind == "time"


@pytest.mark.soak
@posix
def test_what_a_submission_leaves_is_taken_away_however_deep_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than Python can walk, and than a path may be long, in folders that all users may write."""
    shared_folder, others = tmp_path / "tmp", tmp_path / "tmp" / "others"
    others.mkdir(parents=True)
    above = os.open(shared_folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=above)
        below = os.open("d", os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    (shared_folder / "d" / "link").symlink_to(tmp_path)
    leftover_files.take_away(os.getuid(), [str(shared_folder)])
    assert list(shared_folder.iterdir()) == []
    assert tmp_path.is_dir()
    others.mkdir()
    leftover_files.take_away(os.getuid() + 1, [str(shared_folder)])
    assert list(shared_folder.iterdir()) == [others]
    others.chmod(0o777)
    assert list(leftover_files._open_to_all(os.getuid() + 1, [str(shared_folder)])) == [str(shared_folder), str(others)]
    monkeypatch.setattr(leftover_files, "MOST", 0)
    with pytest.raises(leftover_files.Left, match="left more than 0 files and folders"):
        leftover_files.take_away(os.getuid(), [str(shared_folder)])


def test_what_cannot_be_taken_away_ends_the_grading(made_before: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one submission and of a class: the next one could read it. A time-out ends a process amid a test."""

    def left(*_: object) -> None:
        raise leftover_files.Left("it can't be removed")

    monkeypatch.setattr(workers.Graders, "_run", run_here)
    folder = tmp_path / "class"
    for name in ("anna", "ben"):
        (folder / name).mkdir(parents=True)
        (folder / name / LAB.file).write_text("import os\ndef allocate(lives, rows):\n    os._exit(1)\n")
    monkeypatch.setattr(Jail, "end", left)
    rows = list[classes.Row]()
    with pytest.raises(leftover_files.Left, match="it can't be removed"):
        grading.grade(LAB, folder / "anna", AS_WRITTEN, SEED, jails.NONE)
    with pytest.raises(leftover_files.Left, match="anna: it can't be removed"):
        classes.grade_all(Variants(LAB, AS_WRITTEN), folder, SEED, tmp_path / "into", jails.NONE, told=rows.append)
    assert rows == []
