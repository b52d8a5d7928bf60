"""A soak: training with tracking for a long time, to see whether anything grows that should not."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from cluster_env.core.errors import Failure
from tune_jobs.benchmarks import counting
from tune_jobs.benchmarks.processes import ProcessSampler, Reading
from tune_jobs.benchmarks.tracking import free_port, mlflow_server
from tune_jobs.runs.history import KEY, History
from tune_jobs.terminal.tables import write_table

READINGS = "readings.csv"
_END_LIMIT_S = 120.0
_FOR_EVER = 10_000_000


def soak(
    out: Path,
    preset: str,
    runners: int,
    minutes: float,
    every_s: float,
    say: Callable[[str], None],
) -> list[Reading]:
    """Trains with an MLflow server for some minutes, and reads all processes meanwhile.

    Args:
        out: a new folder for the run, the server's store, the logs and the readings.
        preset: what is trained.
        runners: sampling processes.
        minutes: from the first iteration on.
        every_s: seconds between two readings.
        say: shown once a minute.

    Raises:
        Failure: if training ends by itself.
    """
    out.mkdir(parents=True)
    counts = _make_counted(out, every_s)
    readings: list[Reading] = []
    with mlflow_server(out, free_port()) as uri, _training(out, preset, runners, uri) as training:
        history = History(out / "run" / "metrics.csv")
        while not history.path.exists():
            _require_running(training, out)
            time.sleep(0.2)
        sampler = ProcessSampler(os.getpid(), counts)
        began = time.monotonic()
        try:
            while (seconds := time.monotonic() - began) < 60 * minutes:
                _require_running(training, out)
                readings += sampler.read()
                if int(seconds / 60) > int((seconds - every_s) / 60):
                    say(f"{seconds / 60:.0f} of {minutes:g} min: {_iterations(history)} iterations")
                time.sleep(max(0.0, every_s - (time.monotonic() - began - seconds)))
        finally:
            write_table(out / READINGS, [asdict(each) for each in readings])
        say(f"{_iterations(history)} iterations in {minutes:g} minutes")
    return readings


def _iterations(history: History) -> int:
    rows = history.rows()
    return int(rows[-1][KEY]) if rows else 0


def _make_counted(out: Path, every_s: float) -> Path:
    """Has every Python process that is started from now on count its objects."""
    code, counts = out.absolute() / "path", out.absolute() / "counts"
    code.mkdir()
    counts.mkdir()
    shutil.copyfile(counting.__file__, code / "sitecustomize.py")
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(code), *([inherited] if inherited else [])])
    os.environ[counting.FOLDER] = str(counts)
    os.environ[counting.EVERY] = str(every_s)
    return counts


@contextmanager
def _training(
    out: Path, preset: str, runners: int, uri: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """The command that users train with; asked to stop at the end of the block."""
    words = [sys.executable, "-m", "tune_jobs.train", "--debug", preset, "--runners", str(runners)]
    words += ["--run", str(out / "run"), "--set", f"training.iterations={_FOR_EVER}"]
    with (out / "train.log").open("wb") as log:
        training = subprocess.Popen(
            words,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "MLFLOW_TRACKING_URI": uri},
        )
    try:
        yield training
    finally:
        training.send_signal(signal.SIGTERM)
        try:
            training.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            training.kill()
            training.wait()


def _require_running(training: "subprocess.Popen[bytes]", out: Path) -> None:
    if training.poll() is not None:
        raise Failure(f"training ended by itself; see {out / 'train.log'}")
