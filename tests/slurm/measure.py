"""What steering a real Slurm comes to, beside Slurm itself and the simulator; see README.md.

python -m tests.slurm.measure compare --seeds 5     # 60 jobs under Slurm alone and two policies
python -m tests.slurm.measure table                 # its means, and what is predicted
python -m tests.slurm.measure busy                  # a shadow beside 500 jobs that wait
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from tests.conftest import REPOSITORY
from tests.slurm.decisions import order_of, times
from tests.slurm.predicting import NO_DELAYS, Delays, with_delays, without_delays
from tests.slurm.private_slurm import CPUS, PrivateSlurm
from tune_jobs.site.choosing import choose_adviser
from tune_jobs.site.deciding import Limits
from tune_jobs.site.journal import read_journal

NUM_NODES, NUM_JOBS = 4, 60
TICK_S = 0.5
BOUND_S = 10.0
KINDS = ("measured", "simulator", "with nodes", "with delays")
GUARD = ("--max-wait", "30")


def draw_jobs(seed: int) -> list[dict[str, Any]]:
    """Jobs that run for a sixtieth of what they ask for, and come within 15 s."""
    rng = np.random.default_rng(seed)
    jobs = []
    for arrival in np.sort(rng.uniform(0, 15, NUM_JOBS)):
        nodes = int(rng.choice([1, 1, 1, 2]))
        minutes = int(rng.choice([1, 2, 3, 4, 6, 8]))
        cpus = int(rng.choice([1, 8, 16, 32, 48, 64])) if nodes == 1 else int(rng.integers(66, 121))
        jobs.append({"at": float(arrival), "nodes": nodes, "cpus": cpus, "minutes": minutes})
    return jobs


def run(jobs: Sequence[Mapping[str, Any]], policy: str, options: Sequence[str]) -> dict[str, Any]:
    """Submits jobs to a fresh Slurm and waits until all have run."""
    with PrivateSlurm(NUM_NODES) as slurm, tempfile.TemporaryDirectory() as folder:
        steerer = start_steerer(slurm, Path(folder), policy, options) if policy else None
        began, submitted = time.monotonic(), {}
        for job in jobs:
            time.sleep(max(began + job["at"] - time.monotonic(), 0))
            ids = (f"-N{job['nodes']}", f"-n{job['cpus']}", f"-t{job['minutes']}")
            hold = ("--hold",) if policy else ()
            submitted[slurm.submit(f"sleep {job['minutes']}", *ids, *hold)] = job
        while set(slurm.states().values()) != {"COMPLETED"}:
            time.sleep(0.5)
        result: dict[str, Any] = {"jobs": recorded(slurm, submitted)}
        if steerer is not None:
            steerer.terminate()
            steerer.wait()
            result |= asdict(order_of(Path(folder, "steer.jsonl"), slurm))
    return result


def start_steerer(
    slurm: PrivateSlurm, folder: Path, policy: str, options: Sequence[str]
) -> "subprocess.Popen[bytes]":
    """A steerer that has looked at the site once."""
    journal = folder / "steer.jsonl"
    command = [sys.executable, "-m", "tune_jobs.steer", policy, "--act", "--as-root", *options]
    command += ["--tick", str(TICK_S), "--watchdog", "30", "--out", str(journal)]
    environment = {**os.environ, **slurm.environment, "XDG_RUNTIME_DIR": str(folder)}
    environment["PYTHONPATH"] = str(REPOSITORY)
    steerer = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stderr=subprocess.DEVNULL)
    while not (journal.exists() and journal.read_text()):
        time.sleep(0.2)
    return steerer


def recorded(slurm: PrivateSlurm, submitted: Mapping[int, Any]) -> list[dict[str, Any]]:
    """The jobs with when each was submitted, released, started and ended."""
    found = {event: times(slurm, event) for event in ("submit", "release", "start", "end")}
    begin = min(found["submit"].values())
    return [
        {**job, **{event: round(found[event].get(k, begin) - begin, 3) for event in found}}
        for k, job in submitted.items()
    ]


def metrics(submit: Any, start: Any, seconds: Any, cpus: Any) -> dict[str, Any]:
    """Mean bounded slowdown, utilization from the first submission to the last end, waits."""
    slowdown = np.maximum((start - submit + seconds) / np.maximum(seconds, BOUND_S), 1)
    span = (start + seconds).max() - submit.min()
    return {
        "bounded_slowdown": float(slowdown.mean()),
        "utilization": float((cpus * seconds).sum() / span / CPUS / NUM_NODES),
        "mean_wait": float((start - submit).mean()),
        "longest_wait": float((start - submit).max()),
    }


def tabulate(rows: Sequence[Mapping[str, Any]], guarded: str) -> list[dict[str, Any]]:
    """Metrics of recorded runs, and what was predicted of each, with and without delays."""
    found = []
    for row in rows:
        jobs = [
            {**job, "seconds": job["minutes"], "limit": 60 * job["minutes"]} for job in row["jobs"]
        ]
        name = {"Slurm": "", "guarded": guarded}.get(row["line"], "sjf:easy")
        longer = np.array([job["end"] - job["start"] - job["minutes"] for job in jobs])
        began = np.array([job["start"] - job["release"] for job in jobs]) if name else np.zeros(1)
        columns = {key: np.array([job[key] for job in jobs]) for key in ("submit", "start", "cpus")}
        columns["seconds"] = np.array([job["end"] - job["start"] for job in jobs])
        site = (
            sorted(jobs, key=lambda job: job["submit"]),
            choose_adviser(name) if name else None,
            [CPUS] * NUM_NODES,
        )
        limits = Limits(max_wait_s=30 if row["line"] == "guarded" else 0, most_starts=50)
        delays = Delays(longer_s=float(longer.mean()), tick_s=TICK_S)
        plain = without_delays(jobs, name or "fcfs:easy", CPUS * NUM_NODES)
        found.append(
            {
                "seed": row["seed"],
                "line": row["line"],
                "measured": metrics(**columns),
                "simulator": metrics(**plain),
                "with nodes": metrics(**with_delays(*site, NO_DELAYS, limits)),
                "with delays": metrics(**with_delays(*site, delays, limits)),
                "longer_s": float(longer.mean()),
                "release_to_start_s": float(began.mean()),
                **{key: row[key] for key in ("reversed", "reheld") if key in row},
            }
        )
    return found


def summarize(found: Sequence[Mapping[str, Any]]) -> None:
    """Prints means with 95 % intervals (Student's t over the seeds)."""
    lines = list(dict.fromkeys(row["line"] for row in found))
    for line in lines:
        mine = [row for row in found if row["line"] == line]
        print(f"{line}: {len(mine)} runs, reversed {[row.get('reversed') for row in mine]}")
        print("  a job holds its nodes longer by, s:", _interval([r["longer_s"] for r in mine]))
        print("  release to start, s:", _interval([row["release_to_start_s"] for row in mine]))
        for metric in mine[0]["measured"]:
            texts = [f"{k} {_interval([row[k][metric] for row in mine])}" for k in KINDS]
            print(f"  {metric}: {', '.join(texts)}")
    first = {row["seed"]: row for row in found if row["line"] == "Slurm"}
    for line in lines[1:]:
        pairs = [(row, first[row["seed"]]) for row in found if row["line"] == line]
        for metric in pairs[0][0]["measured"]:
            texts = [
                f"{k} {_interval([row[k][metric] - other[k][metric] for row, other in pairs])}"
                for k in KINDS
            ]
            print(f"{line} less Slurm, {metric}: {', '.join(texts)}")


def _interval(values: Sequence[float]) -> str:
    array = np.array(values, float)
    if array.size < 2:
        return f"{array.mean():.2f}"
    half = stats.t.ppf(0.975, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size)
    return f"{array.mean():.2f} +- {half:.2f}"


def busy(num_jobs: int = 500, ticks: int = 30) -> dict[str, Any]:
    """A shadow beside a queue that waits: processor seconds of both, and the lag of advice."""
    with PrivateSlurm(NUM_NODES) as slurm, tempfile.TemporaryDirectory() as folder:
        for k in range(num_jobs):
            slurm.submit("sleep 600", f"-n{1 + k % 60}", "-N1", f"-t{20 + k % 90}")
        time.sleep(5)
        quiet = _cpu(slurm.controller_pid)
        time.sleep(ticks)
        alone = _cpu(slurm.controller_pid) - quiet
        journal = Path(folder, "shadow.jsonl")
        command = [sys.executable, "-m", "tune_jobs.shadow", "saf:easy", "--tick", "1"]
        command += ["--ticks", str(ticks), "--out", str(journal)]
        environment = {**os.environ, **slurm.environment, "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(command, env=environment, cwd=REPOSITORY)
        while not journal.exists() or not journal.read_text():
            time.sleep(0.2)
        reader, controller = _cpu(process.pid), _cpu(slurm.controller_pid)
        while process.poll() is None:
            last = _cpu(process.pid) or reader
            time.sleep(0.3)
        beside = _cpu(slurm.controller_pid) - controller
        lines = list(read_journal(journal))
        lag = [line["ms"]["read"] + line["ms"]["decide"] for line in lines]
        waiting = sum(row[1] == "waiting" for row in lines[-1]["snapshot"]["jobs"])
        return {
            "waiting": waiting,
            "ticks": len(lines),
            "lag_ms_median": float(np.median(lag)),
            "lag_ms_max": max(lag),
            "decide_ms_median": float(np.median([line["ms"]["decide"] for line in lines])),
            "reader_cpu_ms_per_tick": 1000 * (last - reader) / (len(lines) - 1),
            "controller_cpu_ms_per_s_alone": 1000 * alone / ticks,
            "controller_cpu_ms_per_tick_beside": 1000 * beside / (len(lines) - 1),
            "bytes_per_tick": journal.stat().st_size // len(lines),
        }


def compare(seeds: int, guarded: str, chosen: Sequence[str], out: Path) -> None:
    """Adds a line of JSON for each seed under Slurm alone, SJF and a policy behind the guard."""
    lines = {
        "Slurm": ("", ()),
        "sjf:easy": ("sjf:easy", ()),
        "guarded": (guarded, GUARD),
        "unordered": ("sjf:easy", ("--rehold", "0")),
    }
    for seed in range(seeds):
        jobs = draw_jobs(seed)
        for name in chosen:
            policy, options = lines[name]
            entry = {"seed": seed, "line": name, **run(jobs, policy, options)}
            with out.open("a") as file:
                file.write(json.dumps(entry) + "\n")


def _cpu(pid: int) -> float:
    """Processor seconds of a process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["compare", "table", "busy"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--guarded", default="hpc-order", help="policy behind the guard")
    parser.add_argument("--lines", default="Slurm,sjf:easy,guarded", help="also: unordered")
    parser.add_argument("--out", type=Path, default=Path("measured.jsonl"))
    given = parser.parse_args()
    if given.what == "table":
        recorded_rows = [json.loads(line) for line in given.out.read_text().splitlines()]
        summarize(tabulate(recorded_rows, given.guarded))
    elif given.what == "busy":
        print(json.dumps(busy(), indent=1))
    else:
        compare(given.seeds, given.guarded, given.lines.split(","), given.out)
