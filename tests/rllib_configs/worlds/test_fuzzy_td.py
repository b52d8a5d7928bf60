"""Servers that learn on runners: the paper's learning, and the same numbers wherever it is done."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cluster_env.core.errors import Failure, InputError
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.utility import final_utility
from cluster_env.evaluation import evaluate
from cluster_env.worlds.accrual import Accrual
from cluster_env.worlds.accrual.heuristics import AccrualPolicy
from cluster_env.worlds.accrual.rules import Rule
from cluster_env.worlds.accrual.values import VALUE_FUNCTIONS, first_parameters, value_of
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from rllib_configs.networks.registry import make_sampler, network_of
from rllib_configs.policies import save_policy
from rllib_configs.policy_files import load_policy
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.worlds.accrual.fuzzy_td import ServersWork
from rllib_configs.worlds.accrual.servers import Learning, Setting, learn_values
from rllib_configs.worlds.accrual.state_values import NETWORK
from tests.rllib_configs.training import assert_equal, assert_same_numbers
from tests.tune_jobs.tracking.test_recorded_metrics import listed

# Ray changes the process that it starts in: before the first test of the module.
pytestmark = pytest.mark.usefixtures("local_ray")

SMALL = ("task.workload.rate=0.2", "training.jobsets=5", "training.jobsets_per_unit=2")


def config_of(*overrides: str) -> ExperimentConfig:
    """Five servers in three units."""
    window = "task.workload.window=300"
    return load_config("fuzzy-td", [*SMALL, window, "resources.num_runners=0", *overrides])


@pytest.mark.parametrize("values", VALUE_FUNCTIONS)
def test_an_iteration_is_the_papers_learning(values: str) -> None:
    steps, rate = 600, 0.002
    ends = (f"task.world.max_time={steps}", f"task.workload.window={steps}")
    config = config_of(*ends, f"training.values={values}", f"training.lr={rate}")
    learning = Learning(values=values, steps=steps, rate=rate)
    expected = learn_values(Setting(rate=0.2, experiments=5, learning=learning), "both")
    first = first_parameters(learning.kind, 5, generator(0, Purpose.INIT))
    work = ServersWork(config)
    work.set_weights({"values": first.astype(np.float32), "averages": np.zeros((5, 3), np.float32)})
    found = [work.play(unit)[0] for unit in iteration_units(config, 0)]
    learned = [part.per_unit[k] for k, part in enumerate(found)]
    values_found, averages = (np.concatenate(each) for each in zip(*learned, strict=True))
    # A network begins at weights that were rounded to 32 bits.
    rounding = 0 if values == "rulebase" else 1e-5
    np.testing.assert_allclose(values_found, expected.p, rtol=0, atol=rounding)
    np.testing.assert_array_equal(averages[:, 2], expected.memory["count"])
    assert (averages[:, 2] > 30).all()


@pytest.mark.parametrize("several", ["machines", "projects"])
def test_each_machine_and_each_project_learns_values_of_its_own(several: str) -> None:
    steps = 300
    ends = (f"task.world.max_time={steps}", f"task.workload.window={steps}")
    config = config_of(*ends, f"task.world.{several}=2", "task.workload.rate=0.4")
    assert network_of(config).model_config(config, config.task.world)["servers"] == 10
    assert NETWORK.shapes(config, Accrual()) == {"values": (10, 8)}
    world = Accrual(**{several: 2})
    setting = Setting(world=world, rate=0.4, experiments=5, learning=Learning(steps=steps))
    expected = learn_values(setting, "both")
    work = ServersWork(config)
    begun = {"values": np.zeros((10, 8), np.float32), "averages": np.zeros((10, 3), np.float32)}
    work.set_weights(begun)
    units = iteration_units(config, 0)
    learned = [work.play(unit)[0].per_unit[unit.index] for unit in units]
    values, averages = (np.concatenate(each) for each in zip(*learned, strict=True))
    np.testing.assert_array_equal(values, expected.p)
    np.testing.assert_array_equal(averages[:, 2], expected.memory["count"])
    assert len(np.unique(values, axis=0)) == 10


def test_a_second_iteration_goes_on_with_rates_and_averages_of_the_first() -> None:
    config = config_of("task.world.squeeze=false")
    work = ServersWork(config)
    begun = {"values": np.zeros((5, 8), np.float32), "averages": np.zeros((5, 3), np.float32)}
    unit = iteration_units(config, 1)[0]
    work.set_weights(begun)
    fresh = work.play(unit)[0].per_unit[0][1]
    later = {**begun, "averages": np.tile(np.float32([[80.0, 1.0, 5000.0]]), (5, 1))}
    work.set_weights(later)
    values, averages = work.play(unit)[0].per_unit[0]
    assert (averages[:, 2] - 5000 > 10).all()
    assert abs(averages[:, 0] - 80).max() < 10 < abs(fresh[:, 0] - 80).min()
    assert 0 < abs(values).max() < 5  # rates are a seventeenth of what they begin with


def test_numbers_depend_neither_on_runners_nor_on_a_resume(tmp_path: Path) -> None:
    algorithm = build_algorithm(config_of())
    algorithm.train()
    algorithm.save_to_path(tmp_path / "checkpoint")
    last = [iteration_metrics(algorithm.train()) for _ in range(2)][-1]
    expected = module_weights(algorithm)
    save_policy(algorithm, config_of(), tmp_path / "policy")
    algorithm.stop()
    assert len({row.tobytes() for row in expected["values"]}) == 5
    assert expected["averages"][:, 2].sum() > last["train/updates"]

    resumed = build_algorithm(config_of("resources.num_runners=2"))
    resumed.restore_from_path(tmp_path / "checkpoint")
    mix = [iteration_metrics(resumed.train()) for _ in range(2)][-1]
    assert_equal(module_weights(resumed), expected)
    resumed.stop()
    assert_same_numbers([mix], [last])
    assert set(last) <= set(listed())
    assert {"values/p_LLS", "values/rho", "train/productivity", "train/utilization"} <= set(last)

    policy, config = load_policy(tmp_path)
    mean = tuple(expected["values"].astype(np.float64).mean(axis=0))
    task = config.task.build()
    rule = AccrualPolicy(task.world, "mean", Rule("best_fit", "value"), parameters=mean)
    jobsets = task.jobsets(Split.HELD_OUT, range(3))
    utility = [final_utility(evaluate(one, jobsets, task.world)) for one in (policy, rule)]
    np.testing.assert_array_equal(*utility)


def test_values_that_diverge_stop_a_run_or_are_left_out() -> None:
    wild = "training.lr=1e300"
    algorithm = build_algorithm(config_of(wild))
    with pytest.raises(Failure, match=r"iteration 1: the values of server 0 are not finite"):
        algorithm.train()
    algorithm.stop()
    patient = build_algorithm(config_of(wild, "training.on_nan=skip"))
    assert iteration_metrics(patient.train())["train/skipped_updates"] == 5
    assert not module_weights(patient)["values"].any()
    patient.stop()


def test_several_networks_act_by_the_mean_of_their_values() -> None:
    config = config_of("training.values=network", "task.workload.rate=0.5")
    world = config.task.world
    kind = VALUE_FUNCTIONS.index("network")
    rng = np.random.default_rng(0)
    values = first_parameters(kind, 5, rng) + 0.3 * rng.standard_normal((5, 41))
    sampler = make_sampler(config, {"values": values.astype(np.float32)})
    simulator = world.simulator()
    simulator.load(config.task.build().jobsets(Split.TRAIN, [0]), config.task.build_objective())
    rewards, seen = np.empty(1), 0
    while simulator.active[0]:
        features = world.features(simulator.states)
        logits = sampler.logits(simulator.states)[0]
        states = [*features.items[0, :, 1:4], features.context[0, :3]]
        mean = [
            np.mean(
                [value_of(kind, p.astype(np.float32).astype(float), *map(float, x)) for p in values]
            )
            for x in states
        ]
        allowed = features.allowed[0]
        gains = np.array(mean) - mean[-1]
        np.testing.assert_allclose(logits[allowed], gains[allowed], atol=1e-6)
        seen += int(allowed.sum() > 2)
        simulator.step(np.zeros(1, np.int32), sampler.sample(simulator.states, rewards)[0], rewards)
    assert seen > 20


@pytest.mark.parametrize(
    ("preset", "overrides", "said"),
    [
        ("fuzzy-td", ["training.network=set_scorer"], "needs training.network=state_values"),
        ("accrual-smoke", ["training.network=state_values"], "by the algorithm fuzzy_td alone"),
        ("fuzzy-td", ["training.gamma=0.9"], "gamma"),
        ("fuzzy-td", ["training.episodes_per_jobset=2"], "episodes_per_jobset"),
        ("fuzzy-td", ["task.objective=slowdown"], "from utility alone"),
        ("fuzzy-td", ["task.world.preempt=false", "task.world.squeeze=false"], "are false"),
        ("fuzzy-td", ["task.world.kind=hpc"], "of the world accrual alone"),
    ],
)
def test_what_makes_no_sense_is_refused(preset: str, overrides: list[str], said: str) -> None:
    def begun() -> object:
        config = prepare(load_config(preset, overrides))
        return network_of(config).model_config(config, config.task.world)

    with pytest.raises(InputError, match=said) as raised:
        begun()
    assert len(str(raised.value)) < 500


def test_servers_share_nothing() -> None:
    config = config_of()
    work = ServersWork(config)
    begun = {"values": np.zeros((5, 8), np.float32), "averages": np.zeros((5, 3), np.float32)}
    work.set_weights(begun)
    units = iteration_units(config, 0)
    assert [unit.jobsets for unit in units] == [(0, 1), (2, 3), (4,)]
    second = work.play(units[0])[0].per_unit[0][0][1]
    alone = work.play(replace(units[0], jobsets=(1,)))[0].per_unit[0][0][0]
    np.testing.assert_array_equal(second, alone)
