"""Jobs as users submit them: from a host that is no node, over a network, to nodes that get lost.

`make test-nodes`. MLflow listens on the user's machine.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.records import MLflow, is_complete, iterations, tags
from tests.conftest import REPOSITORY
from tests.nodes.namespaces import missing
from tests.nodes.separate_cluster import SeparateCluster
from tests.waiting import wait_for
from tune_jobs.runs.history import History

pytestmark = [
    pytest.mark.integration,
    pytest.mark.nodes,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
]

DELAY_S = 0.01
JOB_TIMEOUT_S = 600.0
ITERATIONS = 120  # of a training that outlives the head's noticing, 18 s
TRIAL_ITERATIONS = 100
SETTINGS = ("training.jobsets=12", "resources.runner_timeout_s=8", "evaluation.every=20")
OBJECTIVES = ("slowdown", "completion_time", "makespan")


@pytest.fixture(scope="module")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeparateCluster]:
    if reason := missing():
        pytest.skip(reason)
    with SeparateCluster(tmp_path_factory.mktemp("nodes"), DELAY_S) as begun:
        begun.start_mlflow()
        yield begun


def lose_one_that_works(cluster: SeparateCluster, run: Path) -> None:
    """Cuts the power of a node with a runner or a trial, once a run is in training."""
    wait_for(lambda: iterations(run) >= 3, f"the first iterations of {run}", JOB_TIMEOUT_S)
    cluster.lose(next(node for node in cluster.workers if node.runners()))


def test_a_submitted_training_outlives_a_node(cluster: SeparateCluster, tmp_path: Path) -> None:
    """Its weights are as if alone, and MLflow has all of it."""
    run, alone = tmp_path / "submitted", tmp_path / "alone"
    settings = [
        word
        for setting in (*SETTINGS, f"training.iterations={ITERATIONS}")
        for word in ("--set", setting)
    ]
    train = ("-m", "tune_jobs.train", "deeprm-smoke", *settings)
    more = ("--run", str(run), "--continue", "--runners", "3")
    cluster.submit("python", *train, *more, name="submitted")
    lose_one_that_works(cluster, run)
    cluster.finish("submitted", JOB_TIMEOUT_S)
    cluster.send_the_rest("submitted")

    rows = History(run / "metrics.csv").rows()
    assert len(rows) == ITERATIONS
    healthy = [row["workers/healthy"] for row in rows]
    assert max(healthy) == 3 > min(healthy)
    cluster.user.call(lambda: is_in_mlflow(cluster, run))
    command = [
        sys.executable,
        *train,
        "--run",
        str(alone),
        "--runners",
        "0",
        "--set",
        "tracking.enabled=false",
    ]
    subprocess.run(command, cwd=REPOSITORY, check=True, timeout=JOB_TIMEOUT_S)
    weights = Path("policy", "weights.pt")
    assert (run / weights).read_bytes() == (alone / weights).read_bytes()


def is_in_mlflow(cluster: SeparateCluster, run: Path) -> None:
    store = MLflow(cluster.tracking_uri)
    is_complete(store, store.runs()[run.name], run)


def test_a_submitted_sweep_over_objectives_outlives_a_node(
    cluster: SeparateCluster, tmp_path: Path
) -> None:
    """Each trial ends, the lost one too, and MLflow has all of them below the sweep."""
    sweep = tmp_path / "objectives.yaml"
    settings = {"training.iterations": TRIAL_ITERATIONS}
    space = {"task.objective": {"grid": list(OBJECTIVES)}}
    definition = {"preset": "deeprm-smoke", "settings": settings, "space": space, "search": "grid"}
    sweep.write_text(json.dumps(definition))  # JSON is YAML
    out = tmp_path / "objectives"
    cluster.submit("python", "-m", "tune_jobs.tune", str(sweep), "--out", str(out), name="sweep")
    tables = "trials/*/metrics.csv"
    wait_for(lambda: any(out.glob(tables)), "the first iteration of a trial", JOB_TIMEOUT_S)
    lose_one_that_works(cluster, next(out.glob(tables)).parent)
    cluster.finish("sweep", JOB_TIMEOUT_S)
    cluster.send_the_rest("sweep")
    assert re.search("is tried again|Ray has lost what", cluster.job_log("sweep"))

    trials = sorted(out.glob("trials/*"))
    assert len(trials) == len(OBJECTIVES)
    for trial in trials:
        assert json.loads((trial / "trial.json").read_text())["status"] == "finished"
        assert iterations(trial) == TRIAL_ITERATIONS
    assert len(list(out.glob("best-*.yaml"))) == len(OBJECTIVES)
    cluster.user.call(lambda: are_in_mlflow(cluster, out.name, trials))


def are_in_mlflow(cluster: SeparateCluster, sweep: str, trials: list[Path]) -> None:
    store = MLflow(cluster.tracking_uri)
    runs = store.runs()
    parent = runs[sweep]["info"]
    assert parent["status"] == "FINISHED"
    children = {
        name[:3]: run
        for name, run in runs.items()
        if tags(run).get("mlflow.parentRunId") == parent["run_id"]
    }
    assert len(children) == len(trials)
    for trial in trials:
        is_complete(store, children[trial.name[-3:]], trial)
