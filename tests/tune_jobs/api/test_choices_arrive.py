"""What a caller of the Python API chooses is what is done: seeds, limits, worlds and folders."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metasched
from cluster_env.core.seeding import Split
from tests.tune_jobs.untrained_runs import SMALL_TASK
from tests.tune_jobs.untrained_scorers import ONE_TASK, make_scorer
from tune_jobs import cli
from tune_jobs.tables.report import Report


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scorer(tmp_path_factory.mktemp("api") / "run", *ONE_TASK)


def adapted(scorer: Path, **options: Any) -> list[Any]:
    few = {"num_steps": 2, "num_jobsets": 2, "num_episodes": 8, "rate": 3.0}
    return metasched.adapt(scorer, ["objective=makespan"], **few, **options)


def logits_of(policy: Any, scorer: Path) -> list[list[float]]:
    """What a policy makes of the first states of some episodes."""
    task = metasched.load_config(scorer / "config.yaml").task.build()
    simulator = task.world.simulator()
    simulator.load(task.jobsets(Split.TRAIN, range(4)), task.objective)
    logits: np.ndarray = policy.network.logits(simulator.states)
    return logits.tolist()


def test_a_comparison_is_on_the_jobsets_of_its_seed() -> None:
    config = metasched.load_config("deeprm", SMALL_TASK)
    one, other, same = (
        metasched.compare(["sjf"], config, num_jobsets=8, seed=seed)[0]["slowdown"]
        for seed in (1, 2, 1)
    )
    assert one == same != other


def test_every_choice_of_a_comparison_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(options: Any, *_: Any) -> tuple[list[Any], list[Any]]:
        asked.append(options)
        return [], []

    monkeypatch.setattr("metasched.comparing.evaluate_policies", ask)
    chosen: dict[str, Any] = {
        **{"at": [0.3], "objective": "makespan", "num_jobsets": 3, "num_episodes": 4},
        **{"warmup": 5, "seed": 6, "decode": "argmax", "guard": True, "limits": {"wait": 0.7}},
    }
    metasched.compare(["sjf"], "deeprm", changes={"seed": 8}, **chosen)
    (options,) = asked
    assert {name: getattr(options, name) for name in chosen} == chosen
    assert (options.on, options.changes, options.policies) == ("deeprm", {"seed": 8}, ["sjf"])


def test_a_policy_of_ones_own_is_asked_to_act_in_the_world_that_is_compared_in() -> None:
    task = metasched.load_config("deeprm", SMALL_TASK).task.build()
    rule, worlds = metasched.get_heuristic("sjf", task.world), []

    class Elsewhere:
        name = "elsewhere"

        def act(self, states: Any, uniforms: Any) -> Any:
            raise AssertionError("it does not act in the world that it was made for")

        def acting_in(self, world: Any, wanted: Any) -> Any:
            worlds.append(world)
            return rule

    (row, known) = metasched.compare([Elsewhere(), "sjf"], task, num_jobsets=8)
    assert set(worlds) == {task.world}
    assert row["slowdown"] == known["slowdown"]


def test_an_adapted_policy_is_written_after_all_of_its_steps(scorer: Path, tmp_path: Path) -> None:
    policies = adapted(scorer, out=tmp_path / "out")
    written, _ = metasched.load_policy(tmp_path / "out")
    last, first = (logits_of(policies[place], scorer) for place in (-1, 0))
    assert logits_of(written, scorer) == last != first


def test_an_adaptation_draws_by_its_seed(scorer: Path) -> None:
    one, other, same = (logits_of(adapted(scorer, seed=seed)[-1], scorer) for seed in (1, 2, 1))
    assert one == same != other


def test_an_environment_of_a_task_has_its_objective_and_options_of_ones_own() -> None:
    task = metasched.load_config("deeprm", [*SMALL_TASK, "task.objective=makespan"]).task.build()
    for env in (metasched.make_env(task), metasched.make_vec_env(task, 2)):
        assert env.unwrapped.setup.task.objective.name == "makespan"
    changed = metasched.make_env(task, objective="slowdown")
    assert changed.unwrapped.setup.task.objective.name == "slowdown"


def test_settings_of_a_training_reach_rllib() -> None:
    changes = {"training.lr": 0.5, "seed": 3}
    config = metasched.algorithm_config("deeprm-smoke", changes).experiment
    assert (config.training.lr, config.seed) == (0.5, 3)


def test_a_study_is_what_its_command_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same defaults."""
    asked: list[Any] = []

    def ask(options: Any, progress: Any) -> Report:
        asked.append(replace(options, runs=list(options.runs)))
        return Report(text="", tables={})

    monkeypatch.setattr("metasched.adapting.study_adaptation", ask)
    monkeypatch.setattr("tune_jobs.adapting.many_tasks.study_adaptation", ask)
    metasched.study(["runs/a"])
    assert cli.run(cli.metasched, ["study", "runs/a"]) == 0
    assert asked[0] == asked[1]
