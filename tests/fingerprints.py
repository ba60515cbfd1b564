"""`make fingerprints`: what tpucc makes of many programs, beside what it made before: a change of the code's structure changes none of it.

A row says what one compilation makes: digests of the text of its stages, of its binary and of the outputs for random inputs, its cycles and
its nanoseconds from end to end; or the code of the error that it ends with. So the first column that differs is the stage to look at. Rows:

- every program of `programs/` for TPU v1 at every level, for 8 cores, for streams, in 16 bits, and for the other targets: for the tiny one
  where it isn't too large;
- random networks;
- steps of training, as graphs and as the weights after one epoch on a machine;
- the points of every lab's reference solution, by `tpucc lab grade` with a fixed seed.

What a page of docs/ says is compared by `docs/generate.py --check`, which `make fingerprints` runs, too.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the number of threads is set before

import tpucc  # noqa: E402
from tests.support.lab_solutions import handed_in  # noqa: E402
from tests.support.networks import MIDDLE, network  # noqa: E402
from tpucc.cli.main import main as command_line  # noqa: E402

WRITTEN = ROOT / "tests" / "golden" / "fingerprints.txt"
WAYS: tuple[dict[str, Any], ...] = (
    *({"level": level} for level in (0, 1, 2)),
    *({"target": target} for target in ("tpu_edge", "tpu_v1_prime")),
    {"cores": 8, "params": {"batch": 16}},
    {"goal": "stream"},
    {"activation_bits": 16},
)
TINY = ("01_hello.tpu", "02_iris.tpu", "03_wine.tpu", "04_digits_mlp.tpu", "06_digits_lstm.tpu")
LARGE = 200_000
"""Instructions of a program that isn't run: it takes a minute."""
NETWORKS = 120
TRAINED = ("02_iris", "03_wine", "04_digits_mlp", "05_digits_cnn", "06_digits_lstm")
STAGES = ("graph", "layers", "tiles", "program")
Row = tuple[str, str, dict[str, Any]]
"""A kind of row, what it is made of, and the options."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares what tpucc makes with what it made before.")
    parser.add_argument("--write", action="store_true", help="write what it makes now")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose names have this text")
    parser.add_argument("--one-of", type=int, default=1, metavar="N", help="only each N-th row")
    asked = parser.parse_args()
    chosen = [row for row in rows() if asked.only in name_of(row)][:: asked.one_of]
    with ProcessPoolExecutor(2) as processes:
        found = list(processes.map(fingerprint, chosen))
    if asked.write:
        WRITTEN.write_text("".join(f"{line}\n" for line in found))
        return 0
    before = [line for line in WRITTEN.read_text().splitlines() if asked.only in line.partition(":")[0]][:: asked.one_of]
    differences = list(difflib.unified_diff(before, found, "before", "now", lineterm="", n=0))
    print("\n".join(differences) or f"{len(found)} fingerprints are as they were")
    return int(bool(differences))


def rows() -> Iterator[Row]:
    programs = sorted((ROOT / "programs").rglob("*.tpu"))
    for path in sorted(programs, key=lambda path: path.stem != "11_resnet50"):  # what takes longest begins first
        name = str(path.relative_to(ROOT / "programs"))
        yield from (("program", name, options) for options in (*WAYS, *([{"target": "tiny"}] if name in TINY else [])))
    for seed in range(NETWORKS):
        yield "network", str(seed), {"target": ("tpu_v1", "tiny")[seed % 2]}
    for name in TRAINED:
        yield "training", name, {}
    for lab in tpucc.lab.labs():
        yield "lab", str(lab.number), {}


def name_of(row: Row) -> str:
    kind, what, options = row
    return " ".join([kind, what, *(f"{name}={value}" for name, value in options.items())])


def fingerprint(row: Row) -> str:
    warnings.simplefilter("ignore")
    kind, what, options = row
    made = {"program": of_program, "network": of_network, "training": of_training, "lab": of_lab}[kind](what, options)
    return f"{name_of(row)}: " + ", ".join(f"{name} {value}" for name, value in made.items())


def of_program(name: str, options: Mapping[str, Any]) -> dict[str, object]:
    return of_executable(lambda: tpucc.compile(ROOT / "programs" / name, **options))


def of_network(seed: str, options: Mapping[str, Any]) -> dict[str, object]:
    return of_executable(lambda: tpucc.compile_source(network(int(seed), MIDDLE), name="net.tpu", **options))


def of_executable(compiled: Any) -> dict[str, object]:
    try:
        exe = compiled()
    except tpucc.Error as error:
        return {"error": " ".join(found.code for found in error.diagnostics)}
    made: dict[str, object] = {stage: digest(getattr(exe, stage).text().encode()) for stage in STAGES}
    with TemporaryDirectory() as folder:
        exe.save(path := Path(folder) / "program.tpub")
        made["binary"] = digest(path.read_bytes())
    stats = exe.stats
    made["cycles"] = stats["cycles"]
    made["ns"] = round(stats["end_to_end"]["seconds"] * 1e9)
    made["stats"] = digest(json.dumps(numbers(stats), sort_keys=True).encode())
    if len(exe.runtime.program.instructions) < LARGE:
        outputs = exe.run(drawn(exe))
        made["outputs"] = digest(b"".join(np.ascontiguousarray(outputs[name]).tobytes() for name in sorted(outputs)))
    return made


def numbers(found: Any) -> Any:
    """What `stats.json` has, without its sentences."""
    if isinstance(found, dict):
        return {name: numbers(value) for name, value in found.items() if not isinstance(value, str)}
    return [numbers(value) for value in found] if isinstance(found, list | tuple) else found


def drawn(exe: tpucc.Executable) -> dict[str, Any]:
    """Inputs of few bits, which each processor draws alike; of integers, zeros and ones."""
    generator = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for name, kind in exe.runtime.inputs.items():
        if kind.dtype == "f32":
            made[name] = (generator.integers(-64, 64, kind.shape) / 32).astype(np.float32)
        else:
            made[name] = generator.integers(0, 2, kind.shape).astype(np.int32)
    return made


def of_training(name: str, options: Mapping[str, Any]) -> dict[str, object]:
    trained = tpucc.train(ROOT / "programs" / f"{name}.tpu", epochs=1, target="tpu_v2")
    weights = trained.weights
    return {
        "step": digest(trained.step.text().encode()),
        "weights": digest(b"".join(np.ascontiguousarray(weights[key]).tobytes() for key in sorted(weights))),
    }


def of_lab(number: str, options: Mapping[str, Any]) -> dict[str, object]:
    lab = tpucc.lab.find(number)
    with TemporaryDirectory() as text:
        folder = Path(text) / f"lab{number}"
        folder.mkdir()
        for name, content in handed_in(lab, "", tpucc.lab.Term("2027-spring")).items():
            (folder / name).write_text(content)
        said = io.StringIO()
        words = ["--lab", number, "--term", "2027-spring", "--seed", "7", "--trust", "--json", f"{text}/r.json"]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            command_line(["lab", "grade", str(folder), *words])
        results = json.loads(Path(text, "r.json").read_text())
    return {"score": results["score"], "tests": digest(json.dumps([(t["name"], t["score"]) for t in results["tests"]]).encode())}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
