"""What steering a real Slurm comes to, beside Slurm itself and the simulator; see README.md.

python -m tests.slurm.measure compare --seeds 5     # 60 jobs under Slurm alone and two policies
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

from cluster_env.core.jobs import JobSet
from cluster_env.evaluation import evaluate
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.hpc import HPC
from tests.conftest import REPOSITORY
from tests.slurm.decisions import order_of, times
from tune_jobs.comparing.trained_runs import find_runs, is_heuristic, load_runs
from tune_jobs.site.journal import read_journal
from tune_jobs.site.private_slurm import CPUS, PrivateSlurm

NUM_NODES, NUM_JOBS = 4, 60
TICK_S = 0.5
BOUND_S = 10.0
GUARD = ("--longest-wait", "30")


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


def predict(jobs: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The same of the simulator, which knows no nodes and no guard, and loses no time."""
    world = HPC(processors=NUM_NODES * CPUS)
    seconds = np.array([job["minutes"] for job in jobs])
    jobset = JobSet.of(
        [int(job["at"]) for job in jobs],
        seconds,
        [[job["cpus"]] for job in jobs],
        attributes={"estimate": 60 * seconds},
    )
    if is_heuristic(name):
        policy: Any = get_heuristic(name, world)
    else:
        policy = load_runs(find_runs([name]), "argmax")[0].policy.acting_in(world)
    schedule = evaluate(policy, [jobset], world)
    return metrics(schedule.arrival, schedule.start, schedule.duration, schedule.demand[:, 0])


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
    parser.add_argument("what", choices=["compare", "busy"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--guarded", default="hpc-universal", help="policy behind the guard")
    parser.add_argument("--lines", default="Slurm,sjf:easy,guarded", help="also: unordered")
    parser.add_argument("--out", type=Path, default=Path("measured.jsonl"))
    given = parser.parse_args()
    if given.what == "busy":
        print(json.dumps(busy(), indent=1))
    else:
        compare(given.seeds, given.guarded, given.lines.split(","), given.out)
