"""SIGKILL at random moments: a run that is resumed ends as if nothing had happened.

METASCHED_KILLS=20 makes it as many kills; by default there are two.
"""

import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.clusters.services import LOOPBACK, family, listening, psutil
from tests.waiting import wait_for
from tune_jobs.runs.checkpoints import Checkpoints
from tune_jobs.runs.history import History
from tune_jobs.tracking.run_file import read_run_file
from tune_jobs.tracking.store import LocalStore

pytestmark = [pytest.mark.integration, pytest.mark.service, pytest.mark.slow]

KILLS = int(os.environ.get("METASCHED_KILLS", "2"))
LIMIT_S = 300.0
ITERATIONS = 12 + 6 * KILLS
SETTINGS = [
    f"training.iterations={ITERATIONS}",
    "training.jobsets=40",
    "training.jobsets_per_unit=10",
    "training.episodes_per_jobset=40",
    "checkpoint.every=2",
    "evaluation.every=0",
]
UNSTEADY = ("time/", "workers/")
ROUNDED = ("train/gradient_norm", "train/entropy")
"""Means over all decisions: PyTorch sums them in an order that depends on where they lie."""


class Training:
    """A ``metasched train`` in a process of its own, with all that it starts."""

    def __init__(self, run: Path, log: Path) -> None:
        self.run = run
        given = ["deeprm-smoke", "--run", str(run), "--runners", "1"]
        given += [part for setting in SETTINGS for part in ("--set", setting)]
        if Checkpoints(run / "checkpoints").all():
            given = ["--resume", str(run)]
        elif run.exists():  # killed before its first checkpoint: it begins anew
            run.rename(run.with_name(f"{run.name}-{time.time_ns()}"))
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tune_jobs.train", *given],
                stdout=out,
                stderr=out,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    "MLFLOW_TRACKING_URI": "",
                },
                start_new_session=True,
            )

    def rows(self) -> int:
        return len(History(self.run / "metrics.csv").rows())

    def wait_for_rows(self, number: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None and self.rows() < number:
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def kill_runner(self) -> None:
        """Kills the env runner; one that was lost before is waited for."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            for process in family(self.process.pid):
                with suppress(psutil.NoSuchProcess):
                    if "UnitEnvRunner" in " ".join(process.cmdline()):
                        process.kill()
                        return
            assert time.monotonic() < deadline, "there is no runner to kill"
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(LIMIT_S)

    def kill(self) -> list[Any]:
        """Kills the driver; returns what it had started, which has to end by itself."""
        started = family(self.process.pid)[:-1]
        self.process.kill()
        self.process.wait(LIMIT_S)
        return started


def is_alive(process: Any) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def weights_of(run: Path) -> bytes:
    return (run / "policy" / "weights.pt").read_bytes()


def numbers(run: Path) -> list[dict[str, float]]:
    return [
        {
            name: pytest.approx(value, rel=1e-5) if name in ROUNDED else value
            for name, value in row.items()
            if not name.startswith(UNSTEADY)
        }
        for row in History(run / "metrics.csv").rows()
    ]


def assert_each_point_is_recorded_once(run: Path) -> None:
    """Compares the local store with the run's own table."""
    file, store = read_run_file(run), LocalStore(run.parent)
    run_id = str(store.find_run(file.experiment, file.key))
    assert store.run(run_id).info.status == "FINISHED"
    points = [point for _, point in store.points_after(run_id, 0)]
    recorded = {(name, step): value for name, value, _, step in points}
    assert len(recorded) == len(points), "a point is recorded twice"
    for iteration, row in History(run / "metrics.csv").by_iteration():
        for name, value in row.items():
            if math.isfinite(value):
                assert (name, iteration) in recorded
            if not name.startswith(UNSTEADY) and name not in ROUNDED and math.isfinite(value):
                assert recorded[name, iteration] == value


def train_undisturbed(folder: Path) -> Path:
    """The run that all others must come to; what it opens to the network is looked at meanwhile."""
    training = Training(folder / "reference", folder / "reference.log")
    try:
        training.wait_for_rows(3)
        addresses = listening(family(training.process.pid))
        assert training.end() == 0, training.log.read_text()
    finally:
        if training.process.poll() is None:
            training.kill()
    assert addresses, "nothing listens, so this looks in the wrong place"
    assert addresses <= LOOPBACK
    return training.run


@pytest.mark.timeout(900 + 300 * KILLS)
def test_random_kills_of_driver_and_runners_change_no_number(tmp_path: Path) -> None:
    reference = train_undisturbed(tmp_path)
    rng = np.random.default_rng(7)
    targets = ["driver", "runner"] * (KILLS // 2) + ["driver"] * (KILLS % 2)
    log = tmp_path / "log"
    training = Training(tmp_path / "run", log)
    orphans: list[Any] = []
    try:
        for target in rng.permutation(targets):
            done = training.rows() if training.run.exists() else 0
            training.wait_for_rows(min(done + 2 + int(rng.integers(3)), ITERATIONS - 2))
            time.sleep(float(rng.uniform(0, 0.3)))
            assert training.process.poll() is None, "it ended before it could be killed"
            if target == "driver":
                orphans += training.kill()
                training = Training(tmp_path / "run", log)
            else:
                training.kill_runner()
        assert training.end() == 0, log.read_text()
    finally:
        if training.process.poll() is None:
            training.kill()
    wait_for(lambda: not any(map(is_alive, orphans)), f"the end of {orphans}", LIMIT_S)
    assert weights_of(tmp_path / "run") == weights_of(reference)
    assert_each_point_is_recorded_once(tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(reference)
