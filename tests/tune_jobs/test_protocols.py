"""Named jobsets beside unseen ones: RLScheduler's windows, and a whole log."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from cluster_env.workloads.swf import write_swf
from cluster_env.worlds.hpc.published import JOBS, window_starts
from tests.cluster_env.worlds.hpc.hpc_jobs import jobset_of
from tests.cluster_env.worlds.hpc.rlscheduler import peer_starts
from tests.golden import stored
from tune_jobs.compare import command
from tune_jobs.measuring.choices import choose_config
from tune_jobs.measuring.trained_runs import find_runs, load_runs

PUBLISHED = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]


def compared(*args: str) -> list[dict]:
    result = CliRunner().invoke(command, list(args), catch_exceptions=False)
    return json.loads(result.stdout)


def options(log: Path, processors: int) -> list[str]:
    settings = {
        **{"world.kind": "hpc", "workload.kind": "trace", "workload.path": log},
        "objective": "bounded_slowdown",
    }
    changes = [f"--set=task.{key}={value}" for key, value in settings.items()]
    return [*changes, "--processors", str(processors), "--json"]


def test_windows_begin_where_they_were_published() -> None:
    assert window_starts(10_000) == PUBLISHED
    with pytest.raises(InputError, match="need a log of 2,049 jobs"):
        window_starts(2_000)


def test_three_protocols_in_one_call(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    count = 2100
    log = tmp_path / "made-up.swf"
    run = rng.integers(5, 900, count)
    columns = {"submit": np.arange(count) * 60, "run": run, "requested_time": run}
    write_swf(log, {**columns, "processors": rng.integers(1, 9, count)}, {"MaxProcs": 64})
    asked = ["--policies", "fcfs,sjf", "--protocol", "unseen, rlscheduler,whole", "--jobsets", "3"]
    rows = compared(*asked, *options(log, 64))
    found = [(row["protocol"], row["policy"], row["jobsets"], row["num_jobs"]) for row in rows]
    assert [one for one in found if one[0] != "unseen"] == [
        ("rlscheduler", "fcfs", 10, 10 * 1024),
        ("rlscheduler", "sjf", 10, 10 * 1024),
        ("whole", "fcfs", 1, count),
        ("whole", "sjf", 1, count),
    ]
    assert [one[:3] for one in found[:2]] == [("unseen", "fcfs", 3), ("unseen", "sjf", 3)]


def test_named_jobsets_keep_their_estimates(tmp_path: Path) -> None:
    log = tmp_path / "small.swf"
    columns = {"submit": np.arange(40) * 9, "run": np.full(40, 5), "processors": np.ones(40)}
    write_swf(log, columns, {"MaxProcs": 4})
    asked = ["--policies", "sjf", "--protocol", "whole", "--set=task.workload.estimates=exact"]
    with pytest.raises(InputError, match="leave out estimates=exact"):
        compared(*asked, *options(log, 4))


def test_the_estimates_of_a_log_count_whatever_a_policy_was_trained_with(tmp_path: Path) -> None:
    log = tmp_path / "small.swf"
    columns = {"submit": np.arange(40) * 9, "run": np.full(40, 5), "processors": np.ones(40)}
    write_swf(log, columns, {"MaxProcs": 4})
    asked = ["--policies", "sjf,hpc-order", "--protocol", "whole"]
    rows = compared(*asked, *options(log, 4))
    assert {(row["policy"], row["num_jobs"]) for row in rows if row["protocol"] == "whole"} == {
        ("sjf", 40),
        ("hpc-order", 40),
    }
    runs = load_runs(find_runs(["hpc-order"]), "argmax")
    config = choose_config(None, [f"task.workload.trace={log}"], {}, runs)
    assert config.task.workload.estimates == "recorded"


def test_unknown_protocols_are_refused() -> None:
    with pytest.raises(InputError, match="unknown protocol 'rlscheduler': known are unseen"):
        compared("--policies", "sjf", "--protocol", "rlscheduler", "--json")


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("lublin_256", {"sjf": 277.35, "f1": 258.37, "sjf easy": 73.31}),
        ("lublin_256_new2", {"fcfs": 7842.47, "wfp easy": 318.35}),
    ],
)
def test_its_loop_has_the_published_numbers_on_its_windows(
    golden: Path, trace: str, expected: dict[str, float]
) -> None:
    with np.load(stored(golden / "rls" / f"trace_{trace}.npz")) as file:
        columns = [file[f"trace_{name}"] for name in ("submit", "run", "req_time", "procs")]
    starts = window_starts(columns[0].size)
    windows = [jobset_of(*(c[first : first + JOBS] for c in columns)) for first in starts]
    for name, value in expected.items():
        order, *easy = name.split()
        costs = [
            np.maximum((start - jobs.arrival + jobs.duration) / np.maximum(jobs.duration, 10), 1)
            for jobs in windows
            for start in [peer_starts(jobs, 256, order, bool(easy))]
        ]
        assert round(float(np.mean(costs)), 2) == value, name
