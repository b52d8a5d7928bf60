"""Recorded schedules, job by job: plain oracles of real logs, RLScheduler, sched-rl-gym."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.spec import get_heuristic
from cluster_env.evaluation import evaluate
from cluster_env.worlds.hpc import HPC
from cluster_env.worlds.hpc.rules import Rule
from tests.cluster_env.worlds.hpc.hpc_jobs import arrays, jobset_of, played
from tests.cluster_env.worlds.hpc.rlscheduler import SCORES, peer_starts
from tests.golden import stored

TRACES = [
    f"{name}{ending}"
    for name, stretch in (("nasa", "x0.5"), ("theta_train", "x0.6"), ("theta_validate", "x0.6"))
    for ending in ("", f"_{stretch}")
]
LUBLIN = ("lublin1_256", "lublin1_1024", "lublin2_256", "lublin2_1024", "lublin1noisy_256")
TRACE_OF = {
    "lublin1": "lublin_256",
    "lublin2": "lublin_256_new2",
    "lublin1noisy": "lublin_256_noisy",
}


def spec_of(name: str) -> str:
    """What a heuristic of a file is called here."""
    parts = name.split("_")
    return f"{parts[0]}:{parts[1] if len(parts) > 1 else 'strict'}"


def starts_of(world: HPC, jobset: JobSet, name: str) -> NDArray:
    """Under a heuristic of a file; RLScheduler's loop is an oracle of the tests."""
    if name.startswith("rls_"):
        _, order, *easy = name.split("_")
        return peer_starts(jobset, world.processors, order, bool(easy))
    return evaluate(get_heuristic(spec_of(name), world), [jobset], world).start


@pytest.mark.parametrize("trace", TRACES)
def test_real_logs_are_scheduled_as_by_a_plain_event_loop(golden: Path, trace: str) -> None:
    data = arrays(stored(golden / "traces" / f"oracle_{trace}.npz"))
    jobset = jobset_of(data["submit"], data["run"], data["est"], data["procs"])
    world = HPC(processors=int(data["procs_total"]))
    policies = [name.removeprefix("wait_") for name in data if name.startswith("wait_")]
    assert len(policies) >= 12
    for name in policies:
        waits = starts_of(world, jobset, name) - jobset.arrival
        np.testing.assert_array_equal(waits, data[f"wait_{name}"], err_msg=name)


@pytest.mark.parametrize("sequences", [*LUBLIN, "theta_train_256"])
def test_rlscheduler_is_repeated_job_by_job(golden: Path, sequences: str) -> None:
    (path,) = (golden / "rls").glob(f"{sequences}_s*.npz")
    data = arrays(path)
    trace = arrays(
        golden / "rls" / f"trace_{TRACE_OF.get(sequences.split('_')[0], 'theta_train')}.npz"
    )
    world, length = HPC(processors=int(trace["max_procs"])), int(data["length"])
    columns = [trace[f"trace_{name}"] for name in ("submit", "run", "req_time", "procs")]
    jobsets = [jobset_of(*(c[o : o + length] for c in columns)) for o in data["offsets"]]
    assert set(data["heuristics"]) == set(SCORES)
    for k, name in enumerate(data["heuristics"]):
        for backfilling in (False, True):
            known = data[f"wait_bf{backfilling:d}"][:, k]
            for jobset, waits in zip(jobsets, known, strict=True):
                starts = peer_starts(jobset, world.processors, str(name), backfilling)
                np.testing.assert_array_equal(starts - jobset.arrival, waits, err_msg=name)


def schedgym_case(data: dict) -> tuple[HPC, JobSet]:
    """The machine and the jobs of a file of sched-rl-gym's."""
    meta = json.loads(str(data["meta"]))
    demand = data["procs"]
    if not meta["ignore_memory"]:
        demand = np.stack([data["procs"], data["mem"]], axis=1)
    world = HPC(meta["procs"], memory=0 if meta["ignore_memory"] else meta["mem"])
    return world, jobset_of(data["submit"], data["run"], data["est"], demand)


def test_sched_rl_gym_where_it_counts_processors(golden: Path) -> None:
    rules = {"fifo": ("fcfs", "strict"), "sjf": ("sjf", "skip")}
    rules |= {"easy": ("fcfs", "easy"), "cons": ("fcfs", "conservative")}
    compared = 0
    for path in sorted((golden / "srg").glob("*.npz")):
        data = arrays(path)
        meta = json.loads(str(data["meta"]))
        world, jobset = schedgym_case(data)
        for name, rule in rules.items():
            same = meta["results"].get(name, {}).get("oracle_same")
            exact = name in ("fifo", "sjf") or same == meta["n"]
            if not exact or f"start_{name}" not in data:
                continue
            found = played(world, [jobset], Rule(*rule)).start + data["submit"][0]
            np.testing.assert_array_equal(found, data[f"start_{name}"], err_msg=f"{path} {name}")
            compared += 1
    assert compared == 38
