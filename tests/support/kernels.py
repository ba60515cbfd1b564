"""The same computation with other kernels of the BLAS, other numbers of threads and other instructions of the processor.

NumPy chooses them when it is imported, so that each needs a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_KERNELS = [
    *[("Prescott", 2), ("Haswell", 1)],
    *[(kernel, threads) for kernel in ("Nehalem", "Sandybridge", "SkylakeX") for threads in (1, 2)],
    *[("Prescott", 1), ("Haswell", 2)],
]
KERNELS = pytest.mark.parametrize(
    ("kernel", "threads"), [pytest.param(*pair, marks=() if place < 1 else pytest.mark.soak) for place, pair in enumerate(_KERNELS)]
)
"""OpenBLAS's kernel and the threads: the first in every run, the others in `make soak`."""
_PRINTED = "import runpy, sys; sys.path.insert(0, sys.argv[1]); print(runpy.run_path(sys.argv[2])[sys.argv[3]]())"


def printed(file: str, function: str, kernel: str, threads: int) -> str:
    """What a function of a file returns there, as text; it takes no arguments.

    A kernel that the processor can't run becomes the one that NumPy would choose.
    """
    chosen = os.environ | {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads)}
    if kernel == "Prescott":
        chosen["NPY_DISABLE_CPU_FEATURES"] = "AVX2 FMA3 AVX512F AVX512_SKX AVX512_ICL X86_V3 X86_V4"  # names of all versions of NumPy
    command = [sys.executable, "-W", "ignore", "-c", _PRINTED, str(Path(__file__).parents[2]), file, function]
    return subprocess.run(command, env=chosen, capture_output=True, text=True, check=True).stdout.strip()
