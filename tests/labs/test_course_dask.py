"""A class graded on a Dask cluster: the table and the results are those of one process, also when a worker is lost. Needs the
extra `dask`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.labs.test_jails import run_here
from tpucc.guest.jails import NONE
from tpucc.labs import find, workers
from tpucc.labs.classes import Row, as_csv, grade_all
from tpucc.labs.lab import AS_WRITTEN
from tpucc.labs.submissions import Variants

distributed = pytest.importorskip("distributed", reason="Dask is not installed; it comes with the extra: pip install -e '.[dev,dask]'")

pytestmark = [pytest.mark.dask, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("made_before")]
LAB = find("puzzles")
"""Its submissions are texts, so that grading is cheap."""


def test_a_worker_is_killed_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, names = tmp_path / "class", sorted(LAB.files(AS_WRITTEN))
    for number in range(6):
        (folder / f"student {number}").mkdir(parents=True)
        for name in names[: number + 1]:
            (folder / f"student {number}" / name).write_text("halt\n")
    (folder / "student 5" / "linked.asm").symlink_to("nowhere")
    with monkeypatch.context() as patch:
        patch.setattr(workers, "_run", run_here)
        alone = grade_all(Variants(LAB, AS_WRITTEN), folder, 3, tmp_path / "alone", NONE)
    seen: list[str] = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        processes = [worker.pid for worker in cluster.workers.values()]

        def kill(row: Row) -> None:
            seen.append(row.name)
            if len(seen) == 2:
                os.kill(processes.pop(), signal.SIGKILL)

        address, begun = cluster.scheduler_address, list[str]()
        rows = grade_all(Variants(LAB, AS_WRITTEN), folder, 3, tmp_path / "cluster", NONE, scheduler=address, told=kill, begun=begun.append)
    assert len(processes) == 1
    assert set(begun) == set(seen)
    assert sorted(seen) == [row.name for row in rows] == [f"student {number}" for number in range(6)]
    assert as_csv(rows) == as_csv(alone)
    for path in (tmp_path / "alone").iterdir():
        assert (tmp_path / "cluster" / path.name).read_bytes() == path.read_bytes()
