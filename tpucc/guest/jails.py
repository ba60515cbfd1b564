"""Where somebody else's code runs: out of sight of the grader and of the reference, with nothing left when it ends.

Four jails, the best first. *bubblewrap* and *namespaces* (util-linux's `unshare`) show the child a file system of its own, with Python, its
libraries, a copy of tpucc without reference solutions and the submission, all read-only; no network; no other process; and the end of the
child is the end of all that it started. *user* gives the child a user number of its own, where the grader is root: file modes keep it out,
and all processes of that user are ended. *none* keeps no secrets, and is for one's own code.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from tpucc.guest.leftover_files import take_away
from tpucc.guest.limits import own_limits
from tpucc.guest.values import MOST

LIMITS = {"AS": 1536 * 2**20, "CPU": 120, "FSIZE": 16 * 2**20, "NPROC": 24, "NOFILE": 128, "CORE": 0}
"""What somebody else's code may use: bytes of memory, seconds, bytes a file, processes, open files."""
LONGEST = 4 * 2**20
"""Bytes of the longest answer of somebody else's code."""
OWN_LONGEST, OWN_MOST = 2**31, 10**8
"""Bytes and values of the longest answer of code of the user's own."""
LIBRARIES = ("numpy", "msgspec", "lark", "networkx", "pyrtl")
"""What the copy of tpucc needs, and what labs of hardware do; a package that isn't installed is left out."""
FIRST_USER = 58_000
"""Users of children are from here on: systems give people and services smaller numbers."""
ROOM = 16
"""MiB of the only folder where a jailed child can write."""
START = "tpucc/guest/start.py"
"""The file that a child runs, below the folder of its copy of tpucc."""


@dataclass(frozen=True)
class Cell:
    """What a child gets: a folder with the stripped package in `lib`, and its submission with the name of the main file.

    `user` is the user number of its children where the grader is root, else -1.
    """

    folder: Path
    file: str
    submission: Path
    user: int = -1


@dataclass(frozen=True)
class Jail:
    """One kind of isolation. This one is none: the child runs as the user, and sees what the user sees."""

    name: str = "none"
    summary: str = "no isolation: the submission sees what you see"
    keeps_secrets: bool = False

    def command(self, cell: Cell, config: Mapping[str, Any]) -> list[str]:
        """The command that starts a child."""
        inside = self.config(cell, cell.folder / "lib", _site_folders(), config)
        return [self.python(), "-I", "-S", str(cell.folder / "lib" / START), inside]

    def place(self, cell: Cell) -> str:
        """Where a child sees the submission's main file."""
        return str(cell.submission / cell.file)

    def environment(self) -> dict[str, str]:
        """What a child's environment has: nothing of the grader's own, and one thread for NumPy. The system's programs are found,
        and Python."""
        system = {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if "SYSTEMROOT" in os.environ else {}
        return {"PATH": f"{os.defpath}{os.pathsep}{os.path.dirname(self.python())}", "LC_ALL": "C.UTF-8", **ONE_THREAD, **system}

    def folders(self, cell: Cell) -> list[str]:
        """Where a child sees its submission, tpucc and its libraries: what messages leave out of paths."""
        return [str(cell.submission), str(cell.folder / "lib"), *_site_folders(), str(cell.folder), sysconfig.get_path("stdlib")]

    def python(self) -> str:
        """The interpreter that a child runs."""
        return python()

    def reaches(self, place: Path) -> bool:
        """Whether children could read a folder of the grader's, where this kind shall keep it from them."""
        return False

    def advice(self, place: str) -> str:
        """What to do about a folder that children could read."""
        return f"use another folder than {place}: children see Python and the system's libraries"

    def end(self, cell: Cell) -> None:
        """Ends what a child started and left behind, as far as this kind can."""

    def config(self, cell: Cell, library: Path, others: Sequence[str], more: Mapping[str, Any]) -> str:
        """What the child is told; the paths are those that it sees."""
        user = cell.user if self.keeps_secrets and cell.user >= 0 else None
        named = {"cell": cell.submission.name}  # says in a list of processes whose they are
        given = {"paths": [str(library), *others], "isolated": True, "limits": LIMITS, "user": user, "longest": LONGEST, "most": MOST}
        return json.dumps(named | given | {"refuses_calls": True} | dict(more))


@dataclass(frozen=True)
class Own(Jail):
    """Code of the user's own: no isolation, this process's Python, environment and path, and limits that only stop what runs wild."""

    name: str = "own"

    def command(self, cell: Cell, config: Mapping[str, Any]) -> list[str]:
        given = {"paths": sys.path, "isolated": False, "limits": own_limits(), "user": None, "longest": OWN_LONGEST, "most": OWN_MOST}
        words = json.dumps(given | {"refuses_calls": False} | dict(config))
        return [sys.executable, "-P", str(grader_folder().parent / START), words]

    def environment(self) -> dict[str, str]:
        return ONE_THREAD | dict(os.environ)

    def folders(self, cell: Cell) -> list[str]:
        return []


@dataclass(frozen=True)
class Mounted(Jail):
    """The kinds in which a child sees a file system of its own, which has only what is mounted for it."""

    keeps_secrets: bool = True

    def folders(self, cell: Cell) -> list[str]:
        return _FOLDERS

    def place(self, cell: Cell) -> str:
        return f"/guest/submission/{cell.file}"

    def reaches(self, place: Path) -> bool:
        return _is_shown(place)


@dataclass(frozen=True)
class Bubblewrap(Mounted):
    """`bwrap`: namespaces for files, processes, network; as another user too, where the grader is root."""

    name: str = "bubblewrap"
    summary: str = "bwrap: own file system, processes and network"

    def command(self, cell: Cell, config: Mapping[str, Any]) -> list[str]:
        words = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
        words += (
            [each for name in ("SETUID", "SETGID", "SETPCAP") for each in ("--cap-add", f"CAP_{name}")]
            if cell.user >= 0
            else ["--unshare-user"]
        )
        above = {str(parent) for place in _system() for parent in Path(place).parents[:-1]}
        for folder in (*sorted(above), "/guest", "/guest/site"):
            words += ["--perms", "0755", "--dir", folder]
        for source, place in _mounts(cell):
            words += ["--symlink", os.readlink(source), place] if os.path.islink(source) else ["--ro-bind", source, place]
        for place in hidden():
            words += ["--tmpfs", place, "--remount-ro", place]
        words += ["--proc", "/proc", "--tmpfs", "/dev"]
        for device in DEVICES:
            words += ["--dev-bind", device, device]
        words += f"--remount-ro /dev --size {ROOM * 2**20} --perms 1777 --tmpfs /tmp --remount-ro / --chdir /tmp".split()
        return [*words, python(), "-I", "-S", f"/guest/lib/{START}", _inside(self, cell, config)]


@dataclass(frozen=True)
class Namespaces(Mounted):
    """`unshare`, and a script that mounts what the child may see."""

    name: str = "namespaces"
    summary: str = "unshare: own file system, processes and network"

    def command(self, cell: Cell, config: Mapping[str, Any]) -> list[str]:
        root = cell.user >= 0
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
        words += [] if root else ["--map-root-user"]
        lines = [f"root={quote(str(cell.folder / 'root'))}", _PREPARE]
        for source, place in _mounts(cell):
            shown = f"link {quote(os.readlink(source))}" if os.path.islink(source) else f"show {quote(source)}"
            lines.append(f"{shown} {quote(place)}")
        lines += [f"cover {quote(place)}" for place in hidden()]
        lines += [f"device {device}" for device in DEVICES]
        drop = "" if root else "setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "
        lines += [_ENTER, f"exec {drop}{quote(python())} -I -S /guest/lib/{START} {quote(_inside(self, cell, config))}"]
        return [*words, "sh", "-c", "\n".join(lines)]


@dataclass(frozen=True)
class OtherUser(Jail):
    """Another user, where the grader is root; the grader's own files must be closed to it."""

    name: str = "user"
    summary: str = "another user, where the grader is root: file modes keep it out; it has the network"
    keeps_secrets: bool = True

    def python(self) -> str:
        """An interpreter of this version that others may run: the one that runs now, or the system's."""
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        others = (f"{folder}/{name}" for folder in ("/usr/local/bin", "/usr/bin"))
        return next((path for path in (python(), *others) if os.path.exists(path) and _open_to_others(Path(path))), python())

    def reaches(self, place: Path) -> bool:
        """Whether children may enter or list a folder, or read a file."""
        return _open_to_others(place.absolute()) and bool(place.stat().st_mode & 0o005)

    def advice(self, place: str) -> str:
        return f"close it to others: chmod go-rwx {place}"

    def end(self, cell: Cell) -> None:
        """Ends all processes of the user, and takes away its files. Raises `Left`."""
        for _ in range(3):
            words = [self.python(), "-I", "-S", str(cell.folder / "lib" / START), json.dumps({"end": cell.user})]
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(words, timeout=10, check=False, capture_output=True)
        take_away(cell.user)


ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
NONE, OWN = Jail(), Own()
NOWHERE = Cell(Path(os.sep), "", Path(os.sep))
"""The cell of code of the user's own: its files are named by who asks."""
JAILS: tuple[Jail, ...] = (Bubblewrap(), Namespaces(), OtherUser())
_FOLDERS = ["/guest/submission", "/guest/lib", "/guest/site", "/guest", sysconfig.get_path("stdlib")]
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_PREPARE = f"""set -e
PATH="$PATH:/usr/sbin:/sbin"
mkdir -p "$root"
mount -t tmpfs -o size=1m,mode=755 tmpfs "$root"
show() {{
    if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root$(dirname "$2")"; : > "$root$2"; fi
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro,nosuid,nodev "$root$2"
}}
link() {{ mkdir -p "$root$(dirname "$2")"; ln -s "$1" "$root$2"; }}
cover() {{ mount -t tmpfs -o size=4k,ro tmpfs "$root$1"; }}
device() {{ : > "$root$1"; mount --bind "$1" "$root$1"; }}
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/.old"
mount -t proc proc "$root/proc"
mount -t tmpfs -o size={ROOM}m,mode=1777 tmpfs "$root/tmp\""""
_ENTER = """cd "$root"
pivot_root . .old
umount -l /.old
mount -o remount,ro /
cd /tmp"""


def _inside(jail: Jail, cell: Cell, config: Mapping[str, Any]) -> str:
    return jail.config(cell, Path("/guest/lib"), ["/guest/site"], config)


def python() -> str:
    """The interpreter without a virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def _open_to_others(path: Path) -> bool:
    """Whether every user may go to where a file lies."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def hidden() -> list[str]:
    """Folders below those that a child sees, which it must not see: installed packages, tpucc and its checkout among them."""
    libraries = _prefix() / f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [libraries / "site-packages", libraries / "dist-packages", Path("/usr/lib/python3/dist-packages"), grader_folder()]
    folders += [checkout for checkout in (grader_folder().parent,) if (checkout / "pyproject.toml").is_file()]
    below = [str(folder) for folder in folders if folder.is_dir() and any(folder.is_relative_to(place) for place in _system())]
    return [place for place in below if not any(Path(place).is_relative_to(other) and place != other for other in below)]


def _is_shown(place: Path) -> bool:
    """Whether a folder lies in one that children see, and isn't hidden there."""
    whole = place.resolve()
    return any(whole.is_relative_to(Path(shown).resolve()) for shown in _system()) and not any(map(whole.is_relative_to, hidden()))


def grader_folder() -> Path:
    """Where the tpucc that grades lies, with its reference solutions."""
    return Path(__file__).resolve().parents[1]


SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives")
"""What a child sees of the system: not all of /usr, below which folders of courses may lie."""


def _prefix() -> Path:
    """Where the interpreter is installed."""
    return Path(sys.base_prefix).resolve()


def _system() -> list[str]:
    """Where a child sees the system and the interpreter, as it is outside: a folder before those inside it, and none twice."""
    own = (str(_prefix() / name) for name in ("bin", "lib", "lib64"))
    places = sorted(place for place in dict.fromkeys((*SYSTEM, *own)) if os.path.lexists(place))
    return [place for place in places if not any(place != other and Path(place).is_relative_to(other) for other in places)]


def _mounts(cell: Cell) -> list[tuple[str, str]]:
    """What a child sees, and where: links stay links."""
    return [
        *((place, place) for place in _system()),
        (str(cell.folder / "lib"), "/guest/lib"),
        (str(cell.submission), "/guest/submission"),
        *((str(path), f"/guest/site/{path.name}") for path in libraries()),
    ]


def libraries() -> list[Path]:
    """The folders of the libraries that a child needs, with the shared objects that wheels put beside them."""
    found = []
    for name in LIBRARIES:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            folder = Path(next(iter(spec.submodule_search_locations)))
            found += [folder, *([beside] if (beside := folder.with_name(f"{name}.libs")).is_dir() else [])]
    return found


def _site_folders() -> list[str]:
    return list(dict.fromkeys(str(path.parent) for path in libraries()))


@dataclass(frozen=True)
class Finding:
    """Whether a jail works on this machine; `reason` says why not. `filtered` says whether the kernel refuses its child the calls that
    `refused_calls` names; None where no child answered."""

    jail: Jail
    works: bool
    reason: str = ""
    filtered: bool | None = None


def probed(jail: Jail, cell: Cell) -> Finding:
    """Tries a jail, with a child that says what it can reach."""
    if isinstance(jail, OtherUser) and cell.user < 0:
        return Finding(jail, False, "needs a grader that is root")
    program = {"bubblewrap": "bwrap", "namespaces": "unshare"}.get(jail.name)
    if program and shutil.which(program) is None:
        return Finding(jail, False, f"there is no {program}")
    secrets = [str(grader_folder() / "labs"), str(grader_folder().parent / "tests" / "labs")]
    words = jail.command(cell, {"modules": (), "warm": False, "probe": secrets})
    try:
        done = subprocess.run(words, capture_output=True, timeout=60, check=False, env=jail.environment(), cwd=cell.folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(jail, False, str(error))
    return _judged(jail, done)


def _judged(jail: Jail, done: subprocess.CompletedProcess[bytes]) -> Finding:
    if done.returncode or len(done.stdout) < 8:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Finding(jail, False, lines[-1] if lines else f"exit status {done.returncode}")
    seen = msgspec.msgpack.decode(done.stdout[8:])["value"]
    fault = _fault(jail, seen)
    return Finding(jail, not fault, fault, seen["filtered"])


def _fault(jail: Jail, seen: Mapping[str, Any]) -> str:
    """Why a jail isn't one, by what its child has seen; empty for a good one."""
    if seen["readable"]:
        return f"the child can read {seen['readable'][0]}: close it to others (chmod go-rwx)"
    if jail.name == "user":
        return "" if seen["filtered"] else "shared memory, which outlives a child, can't be refused here"
    if seen["others"]:
        return "the child sees other processes"
    return "the child has a network" if seen["network"] else ""
