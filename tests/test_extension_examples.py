"""The examples of extensions: each is known to the ordinary commands, and short."""

import csv
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import pytest
import yaml

import cluster_env  # noqa: F401  registers the environments
import rllib_configs.config.loading  # noqa: F401  registers what comes with metasched
from cluster_env.envs import check_cluster_env
from rllib_configs.config import extensions
from tests import test_toy_world
from tests.registries import EXAMPLES, OF_EXTENSIONS, own_registrations
from tests.waiting import run_python
from tune_jobs import cli

FOLDER = Path(__file__).parent / "extensions"
TRAIN_ALL = FOLDER / "train_all.py"
SMOKE = [
    "--set",
    "tracking.enabled=false",
    "--set",
    "training.iterations=2",
    "--set",
    "evaluation.jobsets=4",
]
TRAIN = """
import os, sys
from tests.forked_workers import ray_of_forks
from train_all import main
from tune_jobs import cli
runs, *sweep = sys.argv[1:]
with ray_of_forks(os.environ["METASCHED_IMPORTS"]):
    status = main([runs]) or cli.run(cli.metasched, sweep)
sys.exit(status)
"""


@pytest.fixture
def extend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Names examples in METASCHED_IMPORTS; what they register is gone after the test."""
    monkeypatch.syspath_prepend(FOLDER)
    with own_registrations(OF_EXTENSIONS, [path.stem for path in EXAMPLES]):
        yield lambda *modules: monkeypatch.setenv(extensions.IMPORTS, ",".join(modules))


def metasched(*line: str) -> None:
    assert cli.run(cli.metasched, list(line)) == 0


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "comparison.csv").open() as file:
        return list(csv.DictReader(file))


def test_there_is_one_of_each_and_none_is_long() -> None:
    kinds = {path.stem.removeprefix("own_") for path in EXAMPLES}
    things = {"heuristic", "objective", "workload", "observation", "network", "algorithm", "world"}
    assert kinds == things | {"hook", "order"}
    for path in EXAMPLES:
        assert len(path.read_text().splitlines()) <= 40, path


def test_a_heuristic_is_compared(extend: Callable[..., None], tmp_path: Path) -> None:
    extend("own_heuristic")
    metasched(
        "compare", "--policies", "lcfs,sjf", "--jobsets", "20", "--out", str(tmp_path / "out")
    )
    lcfs, sjf = rows(tmp_path / "out")
    assert (lcfs["policy"], sjf["policy"]) == ("lcfs", "sjf")
    assert float(lcfs["slowdown"]) > float(sjf["slowdown"]) > 1
    assert float(lcfs["unfinished"]) == 0  # nobody waits for ever


def test_an_order_is_compared_with_each_kind_of_backfilling(
    extend: Callable[..., None], tmp_path: Path
) -> None:
    extend("own_order")
    line = "--config hpc-smoke --policies flat,flat:strict,aging,sjf,saf --jobsets 20"
    metasched("compare", *line.split(), "--out", str(tmp_path / "out"))
    slowdowns = [float(row["bounded_slowdown"]) for row in rows(tmp_path / "out")]
    flat, strict, aging, sjf, saf = slowdowns
    assert 1 < flat < strict  # backfilling helps
    assert flat != sjf
    assert aging != saf  # which it is without the time for which a job has waited


def test_a_workload_and_an_objective_are_compared_on(
    extend: Callable[..., None], tmp_path: Path
) -> None:
    extend("own_workload", "own_objective")
    sets = ("workload.kind=nightly", "workload.num_jobs=7", "objective=tardiness")
    line = " ".join(f"--set task.{one}" for one in sets)
    out = str(tmp_path / "out")
    metasched("compare", "--policies", "sjf", "--jobsets", "5", "--out", out, *line.split())
    (row,) = rows(tmp_path / "out")
    assert (row["metric"], row["jobs"], float(row["num_jobs"])) == ("tardiness", "Nightly", 35)
    assert float(row["tardiness"]) > 0


def test_an_observation_is_seen(extend: Callable[..., None]) -> None:
    extend()
    importlib.import_module("own_observation")
    env = gymnasium.make("DeepRM-v0", observation="short")
    observation, _ = env.reset(seed=0)
    assert observation[:2].tolist() == [10, 10]
    check_cluster_env(env, num_episodes=1)


@pytest.mark.integration
def test_a_network_an_algorithm_and_an_objective_are_trained(
    local_ray: None, extend: Callable[..., None], tmp_path: Path
) -> None:
    extend("own_network", "own_algorithm", "own_objective")
    run = str(tmp_path / "run")
    own = ["algorithm=whole_return", "network=linear", "void=-1"]
    sets = [word for text in own for word in ("--set", f"training.{text}")]
    objective = ["--set", "task.objective=tardiness"]
    metasched("train", "deeprm-smoke", "--run", run, *SMOKE, *sets, *objective)
    out = str(tmp_path / "out")
    metasched("compare", "--policies", f"sjf,{run}", "--jobsets", "5", "--out", out)
    learned = rows(tmp_path / "out")[1]
    assert (learned["learned"], learned["trained_for"]) == ("True", "tardiness")
    assert learned["metric"] == "tardiness"


@pytest.mark.integration
def test_a_hook_writes_each_iteration(
    local_ray: None,
    extend: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    extend("own_hook")
    metasched("train", "deeprm-smoke", "--run", str(tmp_path / "run"), *SMOKE)
    lines = (tmp_path / "run" / "iterations.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2]
    assert "train/return_mean" in json.loads(lines[0])


@pytest.mark.integration
def test_a_tuner_of_ones_own_searches_learning_rates(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNE_DISABLE_SIGINT_HANDLER", "1")  # it would stay
    from tests.extensions.tune_with_ray import search

    results = search(tmp_path)
    assert [result.config["lr"] for result in results] == [1e-3, 1e-2]
    assert [result.metrics["training_iteration"] for result in results] == [2, 2]
    slow, fast = (one.metrics["env_runners"]["episode_return_mean"] for one in results)
    assert slow != fast
    assert max(slow, fast) < 0


@pytest.mark.integration
def test_rllibs_own_ppo_is_compared_with_rules(local_ray: None) -> None:
    from tests.extensions.plain_ppo import config_of, measured

    algorithm = config_of(seed=0, steps=8_000).build_algo()
    try:
        before = measured(algorithm.get_module(), num_jobsets=50)
        for _ in range(2):
            algorithm.train()
        after = measured(algorithm.get_module(), num_jobsets=50)
    finally:
        algorithm.stop()
    assert after["sjf"] == before["sjf"]
    slow, fast = (one["plain PPO"]["slowdown"] for one in (before, after))
    assert slow > max(fast, before["sjf"]["slowdown"])


@pytest.mark.integration
def test_a_world_is_trained_in_and_holds_nothing_back(
    local_ray: None, extend: Callable[..., None], tmp_path: Path
) -> None:
    extend("own_world")
    run, out = str(tmp_path / "run"), str(tmp_path / "out")
    own = ["task.world.kind=work_conserving", "training.network=set_scorer", "training.hidden=32"]
    sets = [word for text in own for word in ("--set", text)]
    metasched("train", "deeprm-smoke", "--run", run, *SMOKE, *sets)
    metasched("compare", "--policies", f"sjf,{run}", "--jobsets", "30", "--out", out)
    sjf, learned = rows(tmp_path / "out")
    assert learned["world"] == "work_conserving"
    assert float(learned["utilization"]) > 0.95 * float(sjf["utilization"])
    metasched("compare", "--policies", "sjf,hold:8", "--jobsets", "30", "--out", f"{out}-held")
    held = rows(tmp_path / "out-held")[1]
    assert float(held["utilization"]) < 0.8 * float(sjf["utilization"])


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What processes trained that inherit the extensions: each, and the toy world in a sweep."""
    from tests.extensions.train_all import MODULES

    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "toy.yaml").write_text(yaml.safe_dump(test_toy_world.CONFIG))
    sweep = {
        "name": "toy-sweep",
        "preset": str(folder / "toy.yaml"),
        "search": "grid",
        "settings": {"training.iterations": 2},
        "space": {"training.lr": {"grid": [1e-3, 3e-3]}},
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    line = ["tune", str(folder / "sweep.yaml"), "--runs", str(folder / "runs")]
    line += ["--concurrent", "1"]  # so that both trials run in one process
    path = os.pathsep.join([str(FOLDER), *sys.path])
    own = {"PYTHONPATH": path, extensions.IMPORTS: ",".join([*MODULES, test_toy_world.MODULE])}
    done = run_python("-c", TRAIN, str(folder), *line, timeout_s=500, **own)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.integration
@pytest.mark.slow
def test_each_is_trained_with_two_runners(elsewhere: Path) -> None:
    """Functions of a user's own go to other processes, in workloads, objectives and references."""
    assert_trained_by_two(elsewhere)


@pytest.mark.integration
@pytest.mark.slow
def test_a_world_of_ones_own_is_swept(elsewhere: Path) -> None:
    (trials,) = (elsewhere / "runs").glob("toy-sweep-*/trials.csv")
    with trials.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert {row["metric"] for row in rows} == {"eval/ratio"}  # to the best baseline
    assert all(1 <= float(row["score"]) < 2 for row in rows)


def assert_trained_by_two(runs: Path) -> None:
    """Both runners have done their part in each of the runs."""
    from tests.extensions.train_all import LINES, MODULES

    assert {path.stem for path in EXAMPLES} < set(MODULES)
    for name in LINES:
        with (runs / name / "metrics.csv").open() as file:
            last = list(csv.DictReader(file))[-1]
        healthy = (float(last["workers/healthy"]), float(last["workers/restarts"]))
        assert healthy == (2, 0), name
