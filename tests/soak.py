"""``make soak``: trains with an MLflow server for half an hour, and fails if a process grows.

Memory, descriptors and threads of every process are read every few seconds. The first third is
warm-up; the slope of the rest is compared with a limit. Exit status 1 means that something grows
faster, 2 that the folder exists.

    make soak ARGS='--minutes 5 --preset deeprm-maml'
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray  # noqa: F401  It puts the psutil that it brings on the path.
from scipy.stats import theilslopes

from tests.servers import free_port, mlflow_server
from tune_jobs.tables.frames import write_table

LIMITS = {"heap_mib": 0.5, "descriptors": 0.1, "threads": 0.1}
"""What a process may gain a minute. Half a MiB a minute is 720 MiB a day."""
TOTAL, TOTAL_FACTOR = "total", 2
"""All processes together may gain so many times as much: a dozen that grow a little leak, too."""
WARM_UP = 1 / 3

_ROLES = (
    *(("ray::UnitEnvRunner", "runner"), ("ray::IDLE", "idle worker"), ("ray::", "actor")),
    *(("raylet/raylet", "raylet"), ("gcs_server", "gcs"), ("dashboard/agent.py", "agent")),
    *(("runtime_env/agent", "environment agent"), ("log_monitor.py", "log monitor")),
    *(("autoscaler/_private/monitor.py", "autoscaler"), ("tune_jobs.train", "driver")),
    ("mlflow", "mlflow"),
)

Reading = dict[str, Any]
"""A row of readings.csv: ``minutes``, ``process``, and a number for each of `LIMITS`."""


class Sampler:
    """Reads all processes below one, again and again; one that ends meanwhile is left out."""

    def __init__(self, root: int) -> None:
        import psutil

        self._errors = (psutil.Error, OSError)
        self._root, self._began = psutil.Process(root), time.monotonic()
        self._names: dict[int, str] = {}
        self._numbers: Counter[str] = Counter()

    def read(self) -> list[Reading]:
        """One reading of each process, and of all together."""
        minutes = (time.monotonic() - self._began) / 60
        readings = []
        for process in sorted(self._root.children(recursive=True), key=lambda each: each.pid):
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
                readings.append(
                    {
                        "minutes": minutes,
                        "process": self._name(process),
                        # What the program has asked for and written to: what leaks, leaks here.
                        "heap_mib": int(status.partition("RssAnon:")[2].split()[0]) / 2**10,
                        "descriptors": process.num_fds(),
                        "threads": process.num_threads(),
                    }
                )
            except (*self._errors, IndexError):
                continue
        sums = {name: sum(each[name] for each in readings) for name in LIMITS}
        return [*readings, {"minutes": minutes, "process": TOTAL, **sums}]

    def _name(self, process: Any) -> str:
        """What a process is; an idle worker that has become something else gets a new name."""
        known = self._names.get(process.pid, "")
        if not known or known.startswith(("idle", "other")):
            role = role_of(process.cmdline())
            if not known.startswith(role):
                self._numbers[role] += 1
                self._names[process.pid] = f"{role} {self._numbers[role]}"
        return self._names[process.pid]


def role_of(command: Sequence[str]) -> str:
    """What a process does, by its command line; ``other`` if nobody knows."""
    text = " ".join(command)
    return next((role for word, role in _ROLES if word in text), "other")


def slopes(readings: Sequence[Reading], warm_up_min: float) -> dict[tuple[str, str], float]:
    """What each process that was there from the warm-up to the end gains a minute.

    It is the median over all pairs of readings, which a few odd ones do not move.
    """
    end = max((row["minutes"] for row in readings), default=0.0)
    gains = {}
    for process in dict.fromkeys(row["process"] for row in readings):
        own = [row for row in readings if row["process"] == process]
        late = [row for row in own if row["minutes"] >= warm_up_min]
        if own[0]["minutes"] <= warm_up_min and own[-1]["minutes"] == end and len(late) >= 3:
            minutes = np.array([row["minutes"] for row in late])
            for quantity in LIMITS:
                values = np.array([row[quantity] for row in late])
                gains[process, quantity] = float(theilslopes(values, minutes).slope)
    return gains


def soak(out: Path, preset: str, runners: int, minutes: float, every_s: float) -> list[Reading]:
    """Trains for so many minutes from the first iteration on, and reads all processes meanwhile.

    Raises:
        RuntimeError: if training ends by itself.
    """
    readings: list[Reading] = []
    with mlflow_server(out, free_port()) as uri, _training(out, preset, runners, uri) as training:
        sampler, history = None, out / "run" / "metrics.csv"
        try:
            while sampler is None or readings[-1]["minutes"] < minutes:
                if training.poll() is not None:
                    raise RuntimeError(f"training ended by itself; see {out / 'train.log'}")
                if sampler is None and history.exists():
                    sampler = Sampler(os.getpid())
                if sampler is not None:
                    readings += sampler.read()
                time.sleep(every_s if sampler else 0.2)
        finally:
            if readings:
                write_table(out / "readings.csv", readings)
    return readings


@contextmanager
def _training(
    out: Path, preset: str, runners: int, uri: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """The command that users train with; asked to stop at the end of the block."""
    words = [sys.executable, "-m", "tune_jobs.train", "--debug", preset, "--runners", str(runners)]
    words += ["--run", str(out / "run"), "--set", "training.iterations=10000000"]
    environment = {**os.environ, "MLFLOW_TRACKING_URI": uri}
    with (out / "train.log").open("wb") as log:
        training = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        yield training
    finally:
        training.send_signal(signal.SIGTERM)
        try:
            training.wait(120)
        except subprocess.TimeoutExpired:
            training.kill()
            training.wait()


def report(readings: Sequence[Reading], warm_up_min: float, out: Path) -> int:
    """Writes growth.csv, and shows what each process gains; 1 if one gains too much."""
    gains = slopes(readings, warm_up_min)
    growth = []
    for (process, quantity), gain in gains.items():
        limit = LIMITS[quantity] * (TOTAL_FACTOR if process == TOTAL else 1)
        growth.append({"process": process, "quantity": quantity, "slope": gain, "limit": limit})
    write_table(out / "growth.csv", growth)
    for process in dict.fromkeys(process for process, _ in gains):
        cells = (f"{gains[process, name]:+.2f} {name}" for name in LIMITS)
        sys.stdout.write(f"{process} gains a minute: {', '.join(cells)}\n")
    fast = [each for each in growth if each["slope"] > each["limit"]]
    for each in fast:
        sys.stderr.write(
            f"grows too fast: {each['quantity']} of {each['process']} by {each['slope']:.2f} a "
            f"minute (limit {each['limit']:g})\n"
        )
    return bool(fast)


def main() -> int:
    """Soaks as the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(description="Does anything grow while training goes on?")
    parser.add_argument("--minutes", type=float, default=30.0, help="from the first iteration on")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between readings")
    parser.add_argument("--preset", default="deeprm-ppo", help="what is trained")
    parser.add_argument("--runners", type=int, default=2, help="sampling processes")
    parser.add_argument("--out", type=Path, default=Path("runs/soak"), help="a new folder")
    options = parser.parse_args()
    if options.minutes <= 0 or options.every <= 0:
        parser.error("--minutes and --every must be above 0")
    try:
        options.out.mkdir(parents=True)
    except FileExistsError:
        parser.error(f"{options.out} exists already; give --out a new folder")
    readings = soak(options.out, options.preset, options.runners, options.minutes, options.every)
    return report(readings, WARM_UP * options.minutes, options.out)


if __name__ == "__main__":
    sys.exit(main())
