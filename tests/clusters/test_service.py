"""The service as a whole: jobs on a cluster that loses nodes, with a tracking server that dies.

All tests share one cluster: a head, two workers and an MLflow server, as plain processes that the
scripts in `docker` start.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.local_cluster import LocalCluster, timed
from tests.clusters.records import MLflow, is_complete, iterations, tags
from tests.clusters.services import DOCKER, LOOPBACK, Service, psutil, request
from tests.conftest import REPOSITORY
from tests.extensions.train_all import MODULES
from tests.test_extension_examples import FOLDER, TRAIN_ALL, assert_trained_by_two
from tests.tune_jobs.untrained_scorers import make_family
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.integration,
    pytest.mark.service,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

JOB_TIMEOUT_S = 400.0
TRAIN = ("python", "-m", "tune_jobs.train")
MAML_ITERATIONS = 400  # it still trains when MLflow is back
TRIALS, TRIAL_ITERATIONS = 6, 30
PLAIN = ("deeprm-smoke", "--set", "training.iterations=60", "--set", "checkpoint.every=5")


@pytest.fixture(scope="module")
def times() -> Iterator[dict[str, float]]:
    """How long the parts took; printed at the end, to be seen with ``pytest -s``."""
    found: dict[str, float] = {}
    yield found
    print(f"\nseconds: {json.dumps(found)}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, times: dict[str, float]) -> Any:
    kept = os.environ.get("METASCHED_TEST_FOLDER")  # to look at afterwards
    folder = Path(kept) if kept else tmp_path_factory.mktemp("cluster")
    with contextlib.ExitStack() as stack:
        with timed(times, "start"):
            local = stack.enter_context(LocalCluster(folder))
        yield local


def newest_checkpoint(run: Path) -> str:
    """Name of a run's newest checkpoint, empty if it has none."""
    return max((path.name for path in run.glob("checkpoints/iteration_*")), default="")


def test_nothing_listens_beyond_this_machine(cluster):
    for service in (cluster.head, *cluster.workers, cluster.mlflow):
        addresses = service.listening()
        assert addresses, "nothing listens, so this looks in the wrong place"
        assert addresses <= LOOPBACK


def test_jobs_outlive_a_worker_and_the_tracking_server(cluster, times, tmp_path):
    """A MAML job and a sweep of 6 trials over 3 objectives; a worker and MLflow are killed."""
    meta, sweep = cluster.folder / "runs" / "meta", cluster.folder / "runs" / "sweep"
    family = make_family(cluster.folder / "family.yaml")
    settings = (
        f"training.family={family}",
        "training.tasks=4",
        "training.warm_up=0",
        "training.jobsets=2",
        f"training.iterations={MAML_ITERATIONS}",
        "training.epochs=1",
    )
    with timed(times, "submit"):
        chosen = [word for setting in settings for word in ("--set", setting)]
        cluster.submit(
            *TRAIN, "deeprm-maml", *chosen, "--run", str(meta), "--continue", name="meta"
        )
        trials = ("smoke", "--concurrent", "2", "--set", f"training.iterations={TRIAL_ITERATIONS}")
        cluster.submit(
            *("python", "-m", "tune_jobs.tune", *trials, "--out", str(sweep)), name="sweep"
        )
    with timed(times, "until both train"):
        wait_for(lambda: iterations(meta) >= 5, "the first iterations of MAML", JOB_TIMEOUT_S)
        wait_for(
            lambda: any(iterations(trial) for trial in sweep.glob("trials/*")),
            "the first iteration of a trial",
            JOB_TIMEOUT_S,
        )
    cluster.mlflow.kill()
    cluster.workers[0].kill()
    assert not cluster.mlflow_answers()
    lost_at = iterations(meta)
    with timed(times, "without both"):
        wait_for(lambda: iterations(meta) > lost_at, "training without them", JOB_TIMEOUT_S)
    with timed(times, "restart"):
        cluster.mlflow.start()
        cluster.replace_worker(0)
        cluster.start_ray()
        wait_for(cluster.mlflow_answers, "MLflow's return")
    with timed(times, "until both are done"):
        cluster.finish("meta", JOB_TIMEOUT_S)
        cluster.finish("sweep", JOB_TIMEOUT_S)
        for job in ("meta", "sweep"):
            cluster.send_the_rest(job)

    store = MLflow(cluster.tracking_uri)
    runs = store.runs()
    is_complete(store, runs["meta"], meta)
    assert iterations(meta) == MAML_ITERATIONS
    parent = runs["sweep"]
    assert parent["info"]["status"] == "FINISHED", cluster.job_log("sweep")
    folders = sorted(sweep.glob("trials/*"))
    children = {
        name[:3]: run
        for name, run in runs.items()
        if tags(run).get("mlflow.parentRunId") == parent["info"]["run_id"]
    }
    assert len(folders) == len(children) == TRIALS
    for trial in folders:
        assert json.loads((trial / "trial.json").read_text())["status"] == "finished"
        assert iterations(trial) == TRIAL_ITERATIONS
        is_complete(store, children[trial.name[-3:]], trial)


def test_a_run_goes_on_when_the_head_was_lost(cluster, times):
    """Submitted again to a new head, the same command ends with the weights of a run in peace."""
    lost, peaceful = cluster.folder / "runs" / "lost", cluster.folder / "runs" / "peaceful"
    command = (*TRAIN, *PLAIN, "--runners", "2", "--run", str(lost), "--continue")
    elsewhere = ("--address", cluster.address, "--set", "tracking.enabled=false")
    with timed(times, "a run by --address"):
        done = subprocess.run(
            [*TRAIN, *PLAIN, "--runners", "1", "--run", str(peaceful), *elsewhere],
            cwd=REPOSITORY,
            env=cluster.environment,
            capture_output=True,
            text=True,
            timeout=JOB_TIMEOUT_S,
        )
    assert done.returncode == 0, done.stderr
    cluster.submit(*command, name="lost")
    with timed(times, "until a checkpoint"):
        wait_for(lambda: newest_checkpoint(lost), "the first checkpoint", JOB_TIMEOUT_S)
    cluster.head.kill()
    done_before = iterations(lost)
    assert done_before < 60, "the job was done before the head was killed; give it more to do"
    assert drivers_of(lost) == []
    with timed(times, "until workers have noticed"):
        wait_for(lambda: all(each.has_ended() for each in cluster.workers), "the workers' end")
    with timed(times, "a new head"):
        cluster.replace_head()
        cluster.start_ray()
    with timed(times, "going on"):
        cluster.submit(*command, name="lost-again")
        cluster.finish("lost-again", JOB_TIMEOUT_S)
        cluster.send_the_rest("lost-again")
    assert "Going on after iteration" in cluster.job_log("lost-again")
    assert (lost / "policy" / "weights.pt").read_bytes() == (
        peaceful / "policy" / "weights.pt"
    ).read_bytes()
    store = MLflow(cluster.tracking_uri)
    is_complete(store, store.runs()["lost"], lost)


def test_functions_of_a_user_s_own_travel_with_a_job(cluster, times):
    """Each example of an extension, and one with closures, trains with two runners of a cluster."""
    runs = cluster.folder / "runs" / "own"
    with timed(times, "examples of extensions"):
        cluster.submit(
            *("python", TRAIN_ALL.name, str(runs)),
            name="own",
            working_dir=FOLDER,
            METASCHED_IMPORTS=",".join(MODULES),
        )
        cluster.finish("own", JOB_TIMEOUT_S)
    assert_trained_by_two(runs)


def drivers_of(run: Path) -> list[int]:
    """Processes that train a run."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(run) in (process.info["cmdline"] or ())
    ]


def test_mlflow_answers_only_names_that_it_was_told(cluster, tmp_path):
    """The compose file calls it mlflow:5000, which its guard against DNS rebinding must know."""
    environment = cluster.environment | {
        "MLFLOW_SERVER_ALLOWED_HOSTS": "mlflow:5000,localhost:*,127.0.0.1:*"
    }
    cluster.mlflow.stop()
    server = Service(["sh", str(DOCKER / "start-mlflow.sh")], environment, tmp_path / "mlflow.log")
    server.start()
    try:
        wait_for(cluster.mlflow_answers, "the start of MLflow")
        experiments = f"{cluster.tracking_uri}/api/2.0/mlflow/experiments/search"
        hosts = ({"Host": "mlflow:5000"}, {}, {"Host": "evil"})
        statuses = [request(experiments, b'{"max_results": 1}', **host)[0] for host in hosts]
    finally:
        server.stop()
    assert statuses == [200, 200, 403]
