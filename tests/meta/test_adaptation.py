"""Adaptation: reproducible, one inner step a time, and never with another network."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.adaptation import (
    MetaPolicy,
    adapt_policy,
    load_meta_policy,
    save_adapted,
    untrained_policy,
)
from meta.costs import baseline_of, costs_on, heuristic_costs
from meta.maml.options import MAMLOptions
from meta.tasks import Task
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policy_files import load_policy, write_policy
from tests.tune_jobs.untrained_runs import SMALL_TASK

STEP = {"num_episodes": 8, "num_jobsets": 2}


def config_of(*overrides: str) -> ExperimentConfig:
    return load_config("deeprm-ppo", [*SMALL_TASK, "training.hidden=8", *overrides])


CONFIG = config_of()


def task(seed: int = 3, **changes: object) -> Task:
    return CONFIG.task.model_copy(update=changes).build("mine", seed)


@pytest.fixture
def policy() -> MetaPolicy:
    return untrained_policy(CONFIG, 1)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(policy: MetaPolicy) -> None:
    first, mix = (adapt_policy(policy, task(), 3, **STEP).parameters for _ in range(2))
    assert all(same(a, b) for a, b in zip(first, mix, strict=True))
    other = adapt_policy(policy, task(), 3, **STEP, seed=1).parameters
    assert same(first[0], other[0])
    assert not same(first[1], other[1])


def test_the_threads_of_the_machine_change_no_bit_and_are_left_alone(policy: MetaPolicy) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        two = adapt_policy(policy, task(), 2, **STEP).parameters
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        assert same(two[2], adapt_policy(policy, task(), 2, **STEP).parameters[2])
    finally:
        torch.set_num_threads(before)


def test_more_steps_begin_with_the_same_steps(policy: MetaPolicy) -> None:
    few, many = (adapt_policy(policy, task(), steps, **STEP).parameters for steps in (1, 3))
    assert len(few) == 2
    assert len(many) == 4
    assert all(same(a, b) for a, b in zip(few, many, strict=False))


def test_each_step_plays_new_jobsets_and_each_seed_its_own(policy: MetaPolicy) -> None:
    played: list[int] = []

    class Watched(Task):
        def jobsets(self, split, indices):  # type: ignore[no-untyped-def]
            assert split is Split.TRAIN
            played.extend(indices)
            return super().jobsets(split, played[-len(indices) :])

    plain = task()
    watched = Watched(plain.world, plain.workload, plain.objective, "mine", 3)
    for seed in range(2):
        adapt_policy(policy, watched, 3, **STEP, seed=seed)
    assert len(played) == len(set(played)) == 2 * 3 * 2


def test_the_first_step_is_as_long_as_the_rate_says(
    policy: MetaPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = 0.05  # below the norm of the gradient; and one jobset's is not shortened
    monkeypatch.setattr("meta.adaptation.maml_options", lambda _: MAMLOptions(gradient_clip=clip))
    start = policy.parameters
    for rate in (0.5, 2.0):
        changed = adapt_policy(
            policy.with_rate(rate), task(), 1, num_episodes=8, num_jobsets=1
        ).parameters
        squares = sum(float(((changed[1][name] - start[name]) ** 2).sum()) for name in start)
        # A parameter of about 0.3 is rounded to 3e-8, and moves by 1e-3.
        assert squares**0.5 == pytest.approx(rate * clip, rel=1e-5)


def test_steps_make_an_untrained_policy_better_at_each_objective(policy: MetaPolicy) -> None:
    for objective in ("slowdown", "makespan"):
        mine = task(objective=objective, rules="paper")
        policies = adapt_policy(policy.with_rate(4.0), mine, 12, num_episodes=20).policies()
        before, after = costs_on([policies[0], policies[-1]], mine, num_jobsets=60)
        assert after.value < 0.97 * before.value


def test_the_first_policy_is_the_unadapted_one(policy: MetaPolicy, tmp_path: Path) -> None:
    write_policy(policy.weights, CONFIG, tmp_path)
    unadapted, _ = load_policy(tmp_path)
    first = adapt_policy(policy, task(), 0, **STEP).policies()
    assert len(first) == 1
    states = np.zeros((3, CONFIG.task.world.state_space.shape[0]), np.uint8)
    states[:, -8:] = 2
    assert np.array_equal(first[0].network.logits(states), unadapted.network.logits(states))


def test_a_saved_policy_is_loaded_with_its_task_and_rates(
    policy: MetaPolicy, tmp_path: Path
) -> None:
    rates = {f"rates.{name.replace('.', '_')}": np.float32(np.log(3)) for name in policy.rates}
    weights = {**policy.weights, **{name: np.array(rate) for name, rate in rates.items()}}
    write_policy(weights, CONFIG, tmp_path / "run")
    learned = load_meta_policy(tmp_path / "run")
    assert learned.learned_rates
    assert set(learned.rates) == set(policy.parameters)
    assert list(learned.rates.values()) == pytest.approx([3.0] * len(learned.rates))
    mine = task(objective="makespan")
    adapted = adapt_policy(learned, mine, 2, **STEP).parameters
    save_adapted(learned, mine, adapted[2], tmp_path / "adapted")
    mix = load_meta_policy(tmp_path / "adapted")
    assert same(mix.parameters, adapted[2])
    assert mix.rates == learned.rates
    assert mix.config.task.objective == "makespan"
    scalar = load_meta_policy(tmp_path / "run", rate=0.25)
    assert (set(scalar.rates.values()), scalar.learned_rates) == ({0.25}, False)


def test_capacities_and_slots_may_differ_but_neither_horizon_nor_resources(
    policy: MetaPolicy,
) -> None:
    world = CONFIG.task.world

    def on_cluster(**changes: object) -> Task:
        return task(world=replace(world, cluster=replace(world.cluster, **changes)))

    other = on_cluster(capacity=(7, 9), num_slots=5)
    moved = adapt_policy(policy, other, 1, **STEP).parameters
    assert not same(moved[0], moved[1])
    for changes in ({"horizon": 9}, {"capacity": (4, 4, 4)}):
        impossible = on_cluster(**changes)
        with pytest.raises(InputError, match="where features differ"):
            adapt_policy(policy, impossible, 1, **STEP)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"num_steps": -1}, r"must lie in 0\.\.1000, not -1"),
        ({"num_steps": 1, "num_episodes": 7}, "7 episodes and 4 jobsets"),
        ({"num_steps": 1, "num_episodes": 2}, "at least 2 each"),
        ({"num_steps": 1, "seed": -1}, "a seed must be 0 or larger"),
    ],
)
def test_numbers_out_of_range_are_refused(
    policy: MetaPolicy, numbers: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        adapt_policy(policy, task(), **numbers)


def test_another_network_or_another_width_is_refused(policy: MetaPolicy, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only a bilinear_scorer or set_scorer can be"):
        untrained_policy(load_config("deeprm", list(SMALL_TASK)), 0)
    write_policy(policy.weights, config_of("training.hidden=4"), tmp_path / "narrow")
    with pytest.raises(InputError, match="cannot be used: its weights"):
        load_meta_policy(tmp_path / "narrow")
    with pytest.raises(InputError, match="there is no trained policy"):
        load_meta_policy(tmp_path / "nothing")
    with pytest.raises(InputError, match="an inner rate must be above 0"):
        policy.with_rate(0.0)


def test_the_baseline_is_the_lowest_of_three_heuristics_on_the_held_out_jobsets() -> None:
    mine = task()
    costs = heuristic_costs(mine, num_jobsets=20)
    assert mine.spec.baselines == ("sjf", "packer", "tetris")
    best = baseline_of(mine.spec, costs)
    assert best.value == min(costs[name].value for name in mine.spec.baselines)
    assert costs["random"].value > best.value
    assert costs["tetris"].policy.startswith("tetris:")
    others = heuristic_costs(mine, num_jobsets=20, split=Split.VALIDATION)
    assert others["sjf"].value != costs["sjf"].value
    mix = heuristic_costs(replace(mine, name="mix"), num_jobsets=20)
    assert str(mix) == str(costs)  # no job is large: NaN is not equal to itself
