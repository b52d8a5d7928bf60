"""Kills and stops at random moments: a command that is given again ends as if nothing had happened.

``train`` loses its driver or its runner, ``tune`` its driver or a trial, ``results`` its driver;
all are stopped by SIGTERM and SIGINT, too. By default these are twenty together;
METASCHED_KILLS=50 makes it so many for each of the three.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from mlflow import MlflowClient

from tests.clusters.services import LOOPBACK, family, listening, psutil
from tests.waiting import wait_for
from tune_jobs.runs.history import History

pytestmark = [pytest.mark.integration, pytest.mark.service, pytest.mark.slow]

KILLS = int(os.environ.get("METASCHED_KILLS", "0"))
LIMIT_S = 300.0
SETTINGS = {
    "training.jobsets": 40,
    "training.jobsets_per_unit": 10,
    "training.episodes_per_jobset": 40,
    "checkpoint.every": 2,
    "evaluation.every": 0,
}
UNSTEADY = ("time/", "workers/", "training_share")
ROUNDED = ("train/gradient_norm", "train/entropy")
"""Means over all decisions: PyTorch sums them in an order that depends on where they lie."""
STOPS = {"terminate": (signal.SIGTERM, 143), "interrupt": (signal.SIGINT, 130)}


@dataclass(frozen=True)
class Case:
    """A command, what can be lost, and how often by default.

    Attributes:
        command: its name.
        targets: ``driver``, a stop, or a part of a process's command line, each so many times.
        num_runs: that it trains.
    """

    command: str
    targets: tuple[str, ...]
    num_runs: int

    def args(self, folder: Path, iterations: int) -> list[str]:
        """The command line that begins or goes on."""
        settings = {**SETTINGS, "training.iterations": iterations}
        if self.command == "train":
            sets = [word for key in settings for word in ("--set", f"{key}={settings[key]}")]
            return ["deeprm-smoke", "--run", str(folder), "--continue", "--runners", "1", *sets]
        file = folder.with_suffix(".yaml")
        if self.command == "tune":
            if (folder / "sweep.yaml").exists():
                return ["--resume", str(folder)]
            space = {"training.lr": {"grid": [0.001, 0.01]}}
            whole = {"preset": "deeprm-smoke", "settings": settings, "space": space}
            file.write_text(yaml.safe_dump({**whole, "search": "grid"}))
            return [str(file), "--out", str(folder)]
        del settings["training.iterations"]
        runs = {"name": "tiny-{seed}", "preset": "deeprm-smoke", "iterations": iterations}
        compare = {"policies": "sjf,{out}/tiny-*", "jobsets": 5, "out": "{out}/compared"}
        steps = [{"call": "compare", "options": compare}]
        seeds = list(range(self.num_runs))
        whole = {"minutes": 1, "seeds": seeds, "runs": [{**runs, "settings": settings}]}
        file.write_text(yaml.safe_dump({**whole, "steps": steps}))
        return [str(file), "--out", str(folder), "--force"]


CASES = [
    Case("train", ("driver", "UnitEnvRunner") * 3 + ("terminate", "interrupt"), 1),
    Case("tune", ("driver", "SweepTrial") * 2 + ("terminate", "interrupt"), 2),
    Case("results", ("driver",) * 4 + ("terminate", "interrupt"), 2),
]


class Work:
    """A command in a process of its own, with all that it starts."""

    def __init__(self, case: Case, folder: Path, iterations: int) -> None:
        self.folder, self.log = folder, folder.with_suffix(".log")
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", f"tune_jobs.{case.command}"),
                    *case.args(folder, iterations),
                ],
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
        """Iterations that are done, of all runs."""
        return sum(len(History(run / "metrics.csv").rows()) for run in runs_in(self.folder))

    def wait_for_rows(self, number: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None and self.rows() < number:
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def kill_one(self, name: str) -> None:
        """Kills a process that it has started; one that was lost before is waited for."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            for process in family(self.process.pid)[:-1]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if name in " ".join(process.cmdline()):
                        process.kill()
                        return
            assert time.monotonic() < deadline, f"there is no {name} to kill"
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(LIMIT_S)

    def kill(self) -> list[Any]:
        """Kills the driver; returns what it had started, which has to end by itself."""
        started = family(self.process.pid)[:-1]
        self.process.kill()
        self.process.wait(LIMIT_S)
        return started


def runs_in(folder: Path) -> list[Path]:
    """Folders of runs that have begun."""
    places = [folder, *folder.glob("tiny-*"), *folder.glob("trials/*")]
    return sorted(place for place in places if (place / "metrics.csv").exists())


def is_alive(process: Any) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def weights_in(folder: Path) -> list[bytes]:
    return [(run / "policy" / "weights.pt").read_bytes() for run in runs_in(folder)]


def numbers_in(folder: Path) -> list[list[dict[str, float]]]:
    """Rows of the runs' own tables."""
    return [
        [
            {
                name: pytest.approx(value, rel=1e-5, nan_ok=True) if name in ROUNDED else value
                for name, value in row.items()
                if not name.startswith(UNSTEADY)
            }
            for row in History(run / "metrics.csv").rows()
        ]
        for run in runs_in(folder)
    ]


def table_in(folder: Path) -> pd.DataFrame | None:
    """What a sweep or a comparison came to, without times and names of folders."""
    for name in ("trials.csv", "compared/comparison.csv"):
        if (folder / name).exists():
            table = pd.read_csv(folder / name)
            return table.drop(columns=["busy_s", "run", "runs"], errors="ignore")
    return None


def points_in(folder: Path) -> dict[tuple[str, str, int], str]:
    """The points of all MLflow runs, each recorded once; what is not steady has no value here."""
    (store,) = [place for place in folder.parent.rglob("mlflow.db") if place.is_file()]
    client = MlflowClient(f"sqlite:///{store}")
    points: dict[tuple[str, str, int], str] = {}
    experiments = [one.experiment_id for one in client.search_experiments()]
    for run in client.search_runs(experiments):
        assert run.info.status == "FINISHED", run.info.run_name
        for name in run.data.metrics:
            for point in client.get_metric_history(run.info.run_id, name):
                key = (run.info.run_name, name, point.step)
                assert key not in points, "a point is recorded twice"
                steady = not name.startswith(UNSTEADY) and name not in ROUNDED
                points[key] = repr(point.value) if steady else ""
    return points


@contextlib.contextmanager
def ended(case: Case, folder: Path, iterations: int) -> Iterator[list[Work]]:
    """A command that has begun; the last one of the list is killed if it has not ended by then."""
    works = [Work(case, folder, iterations)]
    try:
        yield works
    finally:
        if works[-1].process.poll() is None:
            works[-1].kill()


def do_undisturbed(case: Case, folder: Path, iterations: int) -> None:
    """What all others must come to; what it opens to the network is looked at meanwhile."""
    with ended(case, folder, iterations) as (work,):
        work.wait_for_rows(3)
        addresses = listening(family(work.process.pid))
        assert work.end() == 0, work.log.read_text()
    assert addresses, "nothing listens, so this looks in the wrong place"
    assert addresses <= LOOPBACK


def do_disturbed(case: Case, folder: Path, iterations: int, targets: Sequence[str]) -> list[Any]:
    """The same with losses at random moments; returns what killed drivers had started."""
    rng, orphans, last = np.random.default_rng(7), list[Any](), iterations * case.num_runs - 2
    with ended(case, folder, iterations) as works:
        for target in rng.permutation(targets):
            work = works[-1]
            work.wait_for_rows(min(work.rows() + 2 + int(rng.integers(3)), last))
            time.sleep(float(rng.uniform(0, 0.3)))
            assert work.process.poll() is None, "it ended before it could be disturbed"
            if target in STOPS:
                number, status = STOPS[target]
                work.process.send_signal(number)
                assert work.end() == status, work.log.read_text()
            elif target == "driver":
                orphans += work.kill()
            else:
                work.kill_one(target)
                continue
            works.append(Work(case, folder, iterations))
        assert works[-1].end() == 0, works[-1].log.read_text()
    return orphans


@pytest.mark.timeout(900 + 300 * KILLS)
@pytest.mark.parametrize("case", CASES, ids=[case.command for case in CASES])
def test_kills_and_stops_at_random_moments_change_no_number(case: Case, tmp_path: Path) -> None:
    targets = (case.targets * KILLS)[: KILLS or len(case.targets)]
    iterations = 12 + 6 * len(targets) // case.num_runs
    reference, folder = tmp_path / "undisturbed" / "work", tmp_path / "disturbed" / "work"
    for place in (reference, folder):
        place.parent.mkdir()
    do_undisturbed(case, reference, iterations)
    orphans = do_disturbed(case, folder, iterations, targets)
    wait_for(lambda: not any(map(is_alive, orphans)), f"the end of {orphans}", LIMIT_S)
    assert len(runs_in(folder)) == case.num_runs
    assert weights_in(folder) == weights_in(reference)
    assert numbers_in(folder) == numbers_in(reference)
    table, wanted = table_in(folder), table_in(reference)
    if table is not None and wanted is not None:
        pd.testing.assert_frame_equal(table, wanted)
    assert (table is None) == (wanted is None) == (case.command == "train")
    assert points_in(folder) == points_in(reference)
