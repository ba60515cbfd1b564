"""Sweeps on a Dask cluster: the table is that of one process, also when a worker is lost. Needs the extra `dask`; `pytest -m dask` runs
only this."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.command_line import run
from tpucc.explain.sweeps.axes import axis_of_text
from tpucc.explain.sweeps.plan import Plan
from tpucc.explain.sweeps.points import Measuring
from tpucc.tasks.cluster import compute

distributed = pytest.importorskip("distributed", reason="Dask is not installed; it comes with the extra: pip install -e '.[dev,dask]'")

pytestmark = [pytest.mark.dask, pytest.mark.filterwarnings("ignore")]
AXES: dict[str, Any] = {"overrides": {"mxu": [8, 16, 32], "weight_bandwidth": [1e9, 2e9, 4e9]}, "params": {"batch": [1, 2, 3, 4, 5, 6]}}


def test_a_worker_is_killed_in_the_middle(small: Path) -> None:
    alone = tpucc.sweep("small.tpu", **AXES, jobs=1, table="alone.csv")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        processes = [worker.pid for worker in cluster.workers.values()]

        def kill(done: int) -> None:
            if done == len(alone) // 3 and processes:
                os.kill(processes.pop(), signal.SIGKILL)

        tpucc.sweep("small.tpu", **AXES, scheduler=cluster.scheduler_address, table="cluster.csv", told=kill)
    assert len(processes) == 1
    assert Path("cluster.csv").read_bytes() == Path("alone.csv").read_bytes()
    assert len(Path("cluster.points.jsonl").read_text().splitlines()) == len(alone) + 1


def test_a_worker_that_sees_other_files_is_refused(small: Path) -> None:
    plan = Plan((str(small),), (axis_of_text("set", "mxu", "16,32"),), {})
    work = pickle.dumps(Measuring(plan, plan.identity))
    small.write_text(small.read_text() + "# more\n")
    with pytest.raises(tpucc.UsageError, match="a worker sees other files") as caught:
        compute(tpucc.__version__, work, [(0, 0)])
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics
    with pytest.raises(tpucc.UsageError, match="a worker has another version of tpucc"):
        compute("0", work, [(0, 0)])


def test_a_scheduler_that_does_not_answer(small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.tasks.cluster.PATIENCE", 1)
    assert run("sweep", small, "--set", "mxu=16,32", "--scheduler", "tcp://127.0.0.1:9") == 2
    assert "error E0562: no scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert run("sweep", small, "--set", "mxu=16,32", "--scheduler", address) == 2
    assert f"error E0562: no scheduler answers at {address}: what listens there says nothing" in capsys.readouterr().err


NO_TPUCC = """
import sys
from importlib.abc import MetaPathFinder
class Without(MetaPathFinder):
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "tpucc":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Without())
from distributed.cli.dask_worker import main
main()
"""


def test_a_worker_without_tpucc_is_refused_and_lives_on(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And nothing of what Dask logs is heard, as of a worker that is gone."""
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as cluster:
        address = cluster.scheduler_address
        words = [sys.executable, "-c", NO_TPUCC, address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
            try:
                assert run("sweep", small, "--set", "mxu=16,32", "--scheduler", address) == 2
                assert worker.poll() is None
            finally:
                worker.kill()
    assert capfd.readouterr().err.splitlines()[0] == "error E0562: a worker can't use tpucc: No module named 'tpucc'"
