"""The bits of float32 results under several kernels, numbers of threads and instruction sets, beside those of a machine that trains.

`python docs/blas_bits.py` prints the two tables of docs/floats.md. OpenBLAS and NumPy choose how they compute when they are loaded, so each
row is a process of its own. What a processor can run, and which bits it finds, differs between processors.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tpucc.floating import functions
from tpucc.floating.matrix_unit import Machine
from tpucc.numerics import Float32

KERNELS = ("", "Haswell", "Sandybridge", "Nehalem", "Prescott")
"""Values of `OPENBLAS_CORETYPE`; without one, OpenBLAS chooses for the processor."""
THREADS = (1, 2)
ROWS = 7
"""Rows of a product that is computed a few rows at a time."""
WITHOUT = "X86_V3 X86_V4"
"""Instructions that NumPy is told not to use, by its names of x86-64's levels."""
UNIT = Machine(128)


def digest(x: Float32) -> str:
    return hashlib.sha256(x.tobytes()).hexdigest()[:8]


def products() -> Mapping[str, str]:
    """Digests of a product of two 512×512 matrices, whole and a few rows at a time, and how many elements differ between the two."""
    drawn = np.random.default_rng(0)
    a, b = (drawn.standard_normal((512, 512), np.float32) for _ in "ab")
    whole, machine = a @ b, UNIT.product(a, b)
    starts = range(0, len(a), ROWS)
    parts = np.concatenate([a[first : first + ROWS] @ b for first in starts])
    assert np.concatenate([UNIT.product(a[first : first + ROWS], b) for first in starts]).tobytes() == machine.tobytes()
    share = f"{(whole != parts).mean():.1%}".replace("%", " %")
    return {"whole": digest(whole), "parts": digest(parts), "share": share, "machine": digest(machine)}


def exponentials() -> Mapping[str, str]:
    """Digests of e to the power of 100,001 numbers."""
    x = np.linspace(-10, 10, 100_001, dtype=np.float32)
    return {"whole": digest(np.exp(x)), "machine": digest(functions.exp(x))}


def measured(what: str, **environment: str) -> Mapping[str, str]:
    """What `products` or `exponentials` finds in a process with these variables; empty ones are left out."""
    variables = {name: value for name, value in environment.items() if value}
    here = [sys.executable, str(Path(__file__).resolve()), what]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    found: Mapping[str, str] = json.loads(subprocess.run(here, env=os.environ | path | variables, check=True, capture_output=True).stdout)
    return found


def tables() -> None:
    print("kernel       threads  a @ b     7 rows at a time  differ   128×128 unit")
    for kernel in KERNELS:
        for threads in THREADS:
            found = measured("products", OPENBLAS_CORETYPE=kernel, OPENBLAS_NUM_THREADS=str(threads))
            print(f"{kernel or 'its own':13}{threads:7}  {found['whole']}  {found['parts']:16}  {found['share']:>6}   {found['machine']}")
    print("\ninstructions         np.exp    128×128 unit")
    for without in ("", WITHOUT):
        found = measured("exponentials", NPY_DISABLE_CPU_FEATURES=without)
        print(f"{f'not {without}' if without else 'all':21}{found['whole']}  {found['machine']}")


if __name__ == "__main__":
    children = {"products": products, "exponentials": exponentials}
    if sys.argv[1:]:
        print(json.dumps(children[sys.argv[1]]()))
    else:
        tables()
