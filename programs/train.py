"""Trains the weights of the numbered programs: `make train`.

It runs the commands below, each as it stands, and puts the weights that they write beside the programs. TPU v2's arithmetic is defined to
the last bit, so they are the same bytes on every machine. With names as arguments, only those programs are trained.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tpucc.cli.main import main as tpucc

PROGRAMS = Path(__file__).resolve().parent
COMMANDS = {
    "02_iris": "tpucc train 02_iris.tpu --target tpu_v2 -D batch=1 --epochs 100",
    "03_wine": "tpucc train 03_wine.tpu --target tpu_v2 -D batch=16 --epochs 30",
    "04_digits_mlp": "tpucc train 04_digits_mlp.tpu --target tpu_v2 -D batch=32 --epochs 20",
    "05_digits_cnn": "tpucc train 05_digits_cnn.tpu --target tpu_v2 -D batch=32 --epochs 30",
    "06_digits_lstm": "tpucc train 06_digits_lstm.tpu --target tpu_v2 -D batch=32 --epochs 40 --seed 1",
    "14_digits_resnet": "tpucc train 14_digits_resnet.tpu --target tpu_v2 -D batch=32 --epochs 15",
}
"""How each program is trained, in the folder of the programs."""
GALLERY = {
    "gallery/digits_vit": "tpucc train gallery/digits_vit.tpu --target tpu_v2 -D batch=32 --epochs 45",
    "gallery/digits_mobilenet": "tpucc train gallery/digits_mobilenet.tpu --target tpu_v2 -D batch=32 --epochs 12",
}
"""Likewise those of the gallery: networks for comparisons."""


def main(names: list[str]) -> int:
    commands = COMMANDS | GALLERY
    if unknown := set(names) - set(commands):
        print(f"no command trains {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for name in names or commands:
        print(f"$ {commands[name]}", flush=True)
        words = commands[name].replace(f"{name}.tpu", str(PROGRAMS / f"{name}.tpu")).split()
        folder = Path("build") / name
        if status := tpucc([*words[1:], "--output", str(folder)]):
            return status
        shutil.copyfile(folder / "weights.npz", PROGRAMS / f"{name}.npz")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
