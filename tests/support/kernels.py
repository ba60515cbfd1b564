"""The same computation with other kernels of the BLAS, other numbers of threads and other instructions of the processor.

NumPy chooses them when it is imported, so that each needs a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

_KERNELS = [
    *[("Prescott", 2), ("Haswell", 1)],
    *[(kernel, threads) for kernel in ("Nehalem", "Sandybridge", "SkylakeX") for threads in (1, 2)],
    *[("Prescott", 1), ("Haswell", 2)],
]
KERNELS = pytest.mark.parametrize(
    ("kernel", "threads"), [pytest.param(*pair, marks=() if place < 1 else pytest.mark.soak) for place, pair in enumerate(_KERNELS)]
)
"""OpenBLAS's kernel and the threads: the first in every run, the others in `make soak`."""
_NEEDS = {"Haswell": "AVX2", "Sandybridge": "AVX", "SkylakeX": "AVX512_SKX"}
"""What a processor must have, by NumPy's names: else it stops at an illegal instruction."""
_NEWER = {"Haswell": [name for name in __cpu_dispatch__ if name.startswith(("AVX512", "X86_V4"))], "Prescott": __cpu_dispatch__}
"""What NumPy is told not to use beside a kernel: of the instructions that it may choose."""
_PRINTED = "import runpy, sys; sys.path.insert(0, sys.argv[1]); print(runpy.run_path(sys.argv[2])[sys.argv[3]]())"


def environment(kernel: str, threads: int, features: Mapping[str, bool] = __cpu_features__) -> dict[str, str]:
    """The variables for a process that computes as a processor with this kernel; one that this processor can't run is left to OpenBLAS.

    `features` are what the processor has.
    """
    chosen = os.environ | {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads)}
    chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(_NEWER.get(kernel, ()))
    if kernel in _NEEDS and not features.get(_NEEDS[kernel]):
        del chosen["OPENBLAS_CORETYPE"]
    return chosen


def printed(file: str, function: str, kernel: str, threads: int) -> str:
    """What a function of a file returns in such a process, as text; it takes no arguments."""
    command = [sys.executable, "-W", "ignore", "-c", _PRINTED, str(Path(__file__).parents[2]), file, function]
    made = subprocess.run(command, env=environment(kernel, threads), capture_output=True, text=True, check=True)
    return made.stdout.strip()
