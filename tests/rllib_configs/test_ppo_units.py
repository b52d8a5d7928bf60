"""A unit's part of an update: PyTorch's gradient, however computed; each row once in a pass."""

from typing import Any

import numpy as np
import pytest
import torch
from ray.rllib.core.columns import Columns

from rllib_configs.algorithms.config import algorithm_config
from rllib_configs.algorithms.ppo import steps_of
from rllib_configs.algorithms.ppo_units import PPOWork, share_of
from rllib_configs.config.loading import load_config
from rllib_configs.learning.flat import flat_gradient, flat_parameters, load_flat
from rllib_configs.learning.losses import log_probabilities_of, symlog
from rllib_configs.runners.episodes import spaces_of
from rllib_configs.runners.sampling import iteration_units


def work_of(*changes: str, preset: str = "deeprm-ppo") -> tuple[Any, Any, PPOWork]:
    """Config, module and work of tiny units."""
    sizes = ["training.jobsets=4", "training.jobsets_per_unit=2", "training.episodes_per_jobset=3"]
    config = load_config(preset, [*sizes, *changes])
    made = algorithm_config(config)
    spec = made.get_default_rl_module_spec()
    spec.observation_space, spec.action_space = spaces_of(config.task.world)
    module = spec.build()
    work = made.make_work(module)
    work.set_weights({name: np.array(value) for name, value in module.get_state().items()})
    return config, module, work


@pytest.mark.parametrize("skip", ["false", "true"])
def test_compiled_gradients_are_those_of_pytorch(skip: str) -> None:
    config, module, work = work_of(f"training.skip_connection={skip}")
    units = iteration_units(config, 0)
    part, rows = work.play(units[0])
    _, others = work.play(units[1])
    assert work._compiled is not None
    total = part + work.play(units[1])[0]
    step = list(steps_of(config.training, total, 0, 0.5))[5]
    moved = flat_parameters(module) + np.random.default_rng(0).normal(
        0, 0.05, flat_parameters(module).size
    ).astype(np.float32)
    for held in (rows, others):
        work.set_parameters(moved)
        found = work.gradient(held, step)
        again = work.gradient(held, step)  # with the features that were kept
        assert np.array_equal(found.gradient, again.gradient)
        compiled, work._compiled = work._compiled, None
        load_flat(module, moved)
        expected = work.gradient(held, step)
        work._compiled = compiled
        scale = np.abs(expected.gradient).max()
        assert np.allclose(found.gradient, expected.gradient, rtol=0, atol=2e-5 * scale)
        assert found.sums["entropy"] == pytest.approx(expected.sums["entropy"], rel=1e-5)


def test_a2c_is_ppo_with_one_update_before_which_no_ratio_differs_from_1() -> None:
    """The preset's gradient is that of Mnih et al. (2016), however narrow the clip range is."""
    config, module, work = work_of("training.clip=1e-6", "training.lr=1e-3", preset="deeprm-a2c")
    part, rows = work.play(iteration_units(config, 0)[0])
    (step,) = steps_of(config.training, part, 0, 0.5)
    work.set_parameters(flat_parameters(module))
    found = work.gradient(rows, step)

    order = rows.order
    assert order is not None
    assert step.num_rows == order.size
    advantages = step.equalizer(rows.advantages[order], rows.jobset[order], rows.spreads)
    answer = module.forward_train({Columns.OBS: torch.from_numpy(rows.states[order])})
    chosen, entropy = log_probabilities_of(
        answer[Columns.ACTION_DIST_INPUTS], torch.from_numpy(rows.actions[order])
    )
    scale = module.network.critic_scale
    missed = answer[Columns.VF_PREDS] - symlog(torch.from_numpy(rows.targets[order]) / scale)
    policy = -(chosen * torch.from_numpy(advantages.astype(np.float32))).mean()
    loss = policy - step.entropy_coefficient * entropy.mean() + 0.5 * (missed**2).mean()
    expected = flat_gradient(loss, module)
    assert np.allclose(found.gradient, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_a_pass_takes_each_row_once_and_the_updates_say_how_many_they_take() -> None:
    config, _, work = work_of()
    parts = [work.play(unit)[0] for unit in iteration_units(config, 0)]
    units = [unit for part in parts for unit in part.per_unit.values()]
    steps = list(steps_of(config.training, parts[0] + parts[1], 0, 1.0))
    assert len(steps) == config.training.epochs * config.training.minibatches
    for epoch in range(config.training.epochs):
        taken = sum(step.num_rows for step in steps if step.epoch == epoch)
        assert taken == sum(unit.num_rows for unit in units)
    places = [k for m in range(4) for k in range(*share_of(10, m, 4).indices(10))]
    assert places == list(range(10))


def test_the_order_of_a_pass_is_that_of_seed_iteration_pass_and_unit() -> None:
    config, module, work = work_of()
    units = iteration_units(config, 0)
    part, rows = work.play(units[0])
    steps = list(steps_of(config.training, part, 0, 1.0))
    work.set_parameters(flat_parameters(module))
    work.gradient(rows, steps[0])
    first = rows.order.copy()
    work.gradient(rows, steps[-1])
    assert not np.array_equal(rows.order, first)
    work.gradient(rows, steps[0])
    assert np.array_equal(rows.order, first)
    assert sorted(first) == list(range(rows.actions.size))
