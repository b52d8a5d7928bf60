"""The proof of the seam: a second world, in one file of tests, is learned by the ordinary commands.

`tests.toy_world` is a single machine whose best order is known: weight over duration. It is swept
in `test_extension_examples`.
"""

import copy
import csv
import importlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import yaml
from gymnasium.utils.env_checker import check_env

from cluster_env.core.seeding import Split
from cluster_env.core.spec import WORLDS, get_heuristic
from cluster_env.envs import check_cluster_env
from cluster_env.evaluation import evaluate
from cluster_env.objectives import OBJECTIVES, get_objective
from cluster_env.task import Task
from rllib_configs.config import extensions
from tests.conftest import REPOSITORY
from tests.registries import own_registrations
from tune_jobs import cli

MODULE = "tests.toy_world"
CONFIG = {
    "name": "toy",
    "task": {
        "world": {"kind": "single_machine", "num_jobs": 8},
        "workload": {"kind": "uniform"},
        "objective": "weighted_flow",
    },
    "training": {
        **{"algorithm": "ppo", "network": "set_scorer", "iterations": 50, "lr": 3e-3},
        **{"jobsets": 16, "jobsets_per_unit": 8, "episodes_per_jobset": 10},
        **{"fresh_jobsets": True, "hidden": 16, "skip_connection": True},
    },
    "resources": {"num_runners": 0},
    "evaluation": {"every": 0, "jobsets": 20},
    "tracking": {"enabled": False},
}


@pytest.fixture(scope="module")
def toy() -> Iterator[object]:
    """The module of the world; what it registers is gone after these tests."""
    with own_registrations((WORLDS, OBJECTIVES), [MODULE]) as patch:
        patch.setenv(extensions.IMPORTS, MODULE)
        yield importlib.import_module(MODULE)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "toy.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


@pytest.fixture(scope="module")
def run(local_ray: None, toy: object, config: Path) -> Path:
    """A policy trained by ``metasched train``."""
    metasched("train", str(config), "--run", str(config.parent / "run"))
    return config.parent / "run"


def metasched(*line: str) -> None:
    assert cli.run(cli.metasched, list(line)) == 0


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_its_file_is_short() -> None:
    text = (REPOSITORY / "tests" / "toy_world.py").read_text()
    assert len(text.splitlines()) <= 120
    assert text.count("WORLDS.register") == 1


def test_smiths_rule_is_the_optimum(toy) -> None:
    world = toy.SingleMachine(6)
    task = Task(world, toy.UniformJobs(6), get_objective("weighted_flow"))
    jobsets = task.jobsets(Split.HELD_OUT, range(10))
    schedule = evaluate(get_heuristic("wspt", world), jobsets, world)
    costs = np.bincount(schedule.episode, schedule.attributes["weight"] * schedule.completion)
    for cost, jobset in zip(costs, jobsets, strict=True):
        weight = jobset.attributes["weight"]
        orders = (list(order) for order in itertools.permutations(range(6)))
        assert cost == min(jobset.duration[o].cumsum() @ weight[o] for o in orders)


@pytest.mark.parametrize("observation", ["state", "features"])
def test_gymnasium_knows_its_id_and_the_observations_of_all_worlds(toy, observation: str) -> None:
    env = gymnasium.make("SingleMachine-v0", observation=observation)
    check_env(env.unwrapped)
    check_cluster_env(env)


def test_a_copy_of_a_simulator_goes_on_by_itself(toy) -> None:
    simulator = toy.SingleMachine().simulator()
    jobset = toy.UniformJobs().sample(np.random.default_rng(0))
    simulator.load([jobset], get_objective("weighted_flow"))
    row, rewards = np.zeros(1, np.int32), np.empty(1)
    simulator.step(row, row, rewards)
    other = copy.deepcopy(simulator)
    while other.active[0]:
        other.step(row, row, rewards)
    assert (simulator.start >= 0).sum() == 1
    assert (other.start >= 0).all()
    assert other.time[0] == other.schedule().finish.max() > simulator.time[0]


def test_states_are_taken_over_while_others_begin(toy) -> None:
    """Rows of two simulators go on alike, also where a jobset of another size is loaded, too."""
    world, rng = toy.SingleMachine(5), np.random.default_rng(0)
    jobset = toy.UniformJobs(5).sample(rng)
    one, other = world.simulator(), world.simulator()
    for simulator in (one, other):
        simulator.load([jobset, toy.UniformJobs(5).sample(rng)], OBJECTIVES.get("slowdown"), 2)
    rewards = np.empty(1)
    for row, simulator in ((1, one), (0, other), (0, other)):
        simulator.step(np.array([row], np.int32), np.array([2], np.int32), rewards)
    one.take_over(other, np.array([0], np.int32), np.array([1], np.int32))
    assert one.states[1].tolist() == other.states[0].tolist()
    assert one.start[1].tolist() == other.start[0].tolist()
    one.reset(np.array([1], np.int32))
    assert one.states[1].tolist() == one.states[0].tolist()
    assert (one.start[1] == -1).all()


@pytest.mark.integration
@pytest.mark.slow
def test_a_policy_comes_within_two_percent_of_the_optimum(run: Path, tmp_path: Path) -> None:
    line = ["--policies", f"spt,wspt,{run}", "--jobsets", "200", "--decode", "argmax"]
    metasched("compare", *line, "--out", str(tmp_path / "out"))
    spt, wspt, learned = table(tmp_path / "out" / "comparison.csv")
    assert learned["learned"] == "True"
    assert float(learned["weighted_flow"]) <= 1.02 * float(wspt["weighted_flow"])
    assert float(spt["weighted_flow"]) > 1.1 * float(wspt["weighted_flow"])
    metasched("compare", *line[:2], "--jobsets", "5", "--at", "1,20", "--out", str(tmp_path / "at"))
    assert [row["largest_weight"] for row in table(tmp_path / "at" / "comparison.csv")] == (
        ["1.0"] * 3 + ["20.0"] * 3
    )


@pytest.mark.integration
@pytest.mark.slow
def test_it_is_adapted_to_another_objective(run: Path, tmp_path: Path) -> None:
    task = ["--task", "objective=completion_time", "--rate", "8"]
    numbers = ["--steps", "10", "--episodes", "40", "--evaluate", "50"]
    metasched("adapt", str(run), *task, *numbers, "--out", str(tmp_path / "adapted"))
    rows = table(tmp_path / "adapted" / "adaptation.csv")
    costs = [float(row["cost"]) for row in rows if row["step"]]
    assert rows[0]["metric"] == "completion_time"
    assert costs[-1] < costs[0]
