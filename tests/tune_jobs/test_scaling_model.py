"""The model of an iteration: its formula by hand, and costs found again in made-up measurements."""

import numpy as np
import pytest

from rllib_configs.runners.sampling import SampleUnit
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Request, Round
from tune_jobs import bench, cli
from tune_jobs.benchmarks.scaling_model import Costs, fit
from tune_jobs.benchmarks.stand_ins import StandIn

COSTS = Costs(unit_s=0.5, unit_decisions=1000, rounds=3, round_s=0.002, call_s=0.0001)


def test_an_iteration_by_hand():
    assert COSTS.seconds(10, units=2) == pytest.approx(1.0 + 3 * (0.002 + 0.001))
    assert COSTS.decisions_per_s(10, units=2) == pytest.approx(20_000 / 1.009)
    assert COSTS.speedup(10) == pytest.approx(10 * 0.5063 / 0.509)


def test_speed_ends_where_calls_take_all_the_time():
    speeds = [COSTS.decisions_per_s(10**power) for power in range(8)]
    assert speeds == sorted(speeds)
    assert speeds[-1] == pytest.approx(1000 / (3 * 0.0001), rel=1e-2)


def test_costs_are_found_again():
    counts = (2, 5, 20)
    found = fit(counts, [COSTS.seconds(n) for n in counts], 0.5, 1000, 3)
    assert (found.round_s, found.call_s) == pytest.approx((0.002, 0.0001))


def test_no_cost_is_below_zero():
    """Noise may say that more runners take less time; the model does not believe it."""
    found = fit((1, 2, 8), [0.1, 0.05, 0.0125], 0.0, 10, 1)
    assert found.call_s == 0
    # What is left is the constant with the least sum of (1 - a / value)^2.
    inverse = np.array([10.0, 20.0, 80.0])
    assert found.round_s == pytest.approx(inverse.sum() / (inverse**2).sum())


def test_a_stand_in_answers_as_a_runner_does():
    gradient = np.array([1.0, 2.0], np.float32)
    stand_in = StandIn(Part(sums={"decisions": 7.0}), Part(gradient, {"entropy": 1.0}), 0.05, 0.0)
    units = {2: SampleUnit(2, 0, (0,)), 3: SampleUnit(3, 0, (0,))}
    played = stand_in.sample(request=Request(units, Round(0, {}, 4)))
    assert played.seconds >= 0.1
    assert {node: dict(part.sums) for node, part in played.parts.items()} == {
        (1, 1): {"decisions": 14.0}
    }
    learned = stand_in.sample(request=Request(units, Round(0, {}, 4, "step", {})))
    np.testing.assert_array_equal(learned.parts[1, 1].gradient, [2.0, 4.0])


def test_algorithms_of_other_rounds_are_refused(capsys):
    assert cli.run(bench.command, ["scaling", "--preset", "deeprm-maml"]) == 2
    assert "reinforce or ppo" in capsys.readouterr().err
