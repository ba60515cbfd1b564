"""The tests of floats, of the BLAS and of ONNX Runtime, as if on other processors.

`python tests/processors.py` runs a few in a minute, which `make check` does; `--all` runs all of them, for `make soak`. NumPy and OpenBLAS
are told by variables what they may use. ONNX Runtime can't be told. So its tests run in an emulator of a processor without VNNI, if there
is one: Debian's package qemu-user. An emulator knows one process: what a test starts runs on this processor.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.kernels import environment  # noqa: E402

FLOATS = "portable floating_product calibrate quantise onnx_casts"
RUNTIME = "onnx_casts backends"
"""Files of tests/unit, of each run."""
SHORT = "not programs and not CastLike and (uint8 or not int8 or onnx_casts)"
"""What the emulator runs of them in every run: no whole programs, which take it seconds each, of two equal operators one, and of products
those with unsigned weights, which the others have here, too."""
ALL_FLOATS = "floating_functions floating_sums fidelity ops_values onnx_export onnx_reading keras sensitivity training"
ALL_RUNTIME = "onnx_reading onnx_export onnx_gemm_alpha onnx_nearest keras numerics"
DIFFERENTIAL = ("tests/differential/test_onnxruntime.py", "tests/differential/test_onnx_damaged.py")
EMULATOR = "qemu-x86_64"
"""Beside the kernel Prescott: qemu 7.2 has a fault at AVX2, with which NumPy's argsort doesn't sort."""


def files(names: str) -> list[str]:
    return [f"tests/unit/test_{name}.py" for name in names.split()]


def run(title: str, command: list[str], variables: dict[str, str]) -> bool:
    made = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    lines = made.stdout.rstrip().splitlines() or made.stderr.rstrip().splitlines()
    print(f"{title}: {lines[-1] if made.returncode == 0 else 'failed'}", *(lines[-200:] if made.returncode else ()), sep="\n", flush=True)
    return made.returncode == 0


def main(whole: bool) -> int:
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *([] if whole else ["-m", "not long"])]
    floats = files(f"{FLOATS} {ALL_FLOATS}" if whole else FLOATS)
    kernels = ["Prescott", *(["Nehalem", "Sandybridge", "Haswell", "SkylakeX"] if whole else [])]
    ways = [(f"kernel {kernel}", [*pytest, *floats], environment(kernel, 1)) for kernel in kernels]
    emulator = shutil.which(EMULATOR) if platform.machine() == "x86_64" else None
    if emulator is None:
        print(f"without {EMULATOR} nothing is emulated: apt-get install qemu-user")
    else:
        tests = [*files(f"{RUNTIME} {ALL_RUNTIME}"), *DIFFERENTIAL] if whole else files(RUNTIME)
        command = [emulator, "-cpu", "Haswell", *pytest, *tests, *([] if whole else ["-k", SHORT])]
        ways.insert(0, ("a Haswell, emulated", command, environment("Prescott", 1)))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, *zip(*ways, strict=True)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main("--all" in sys.argv[1:]))
