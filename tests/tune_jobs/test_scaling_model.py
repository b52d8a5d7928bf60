"""The model of an iteration: formulas by hand, and costs found again in made-up measurements."""

import numpy as np
import pytest

from rllib_configs.runners.batched import SampleUnit
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.runners.units import SampleRequest
from tune_jobs import bench, cli
from tune_jobs.benchmarks.scaling_model import Costs, IterationParts, Parts, fit
from tune_jobs.benchmarks.stand_ins import StandIn

COSTS = Costs(
    broadcast_s=0.01,
    fetch_s=0.0001,
    unit_s=0.5,
    unit_rows=1000,
    gather_s=0.003,
    call_s=0.002,
    row_s=1e-6,
    learn_row_s=4e-6,
)


def test_an_iteration_by_hand():
    parts = COSTS.predict(10, units=2)
    assert parts.broadcast == pytest.approx(0.011)
    assert parts.sample == pytest.approx(1.0)
    assert parts.gather == pytest.approx(0.003 + 0.02 + 0.02)
    assert parts.learn == pytest.approx(0.08)
    assert parts.total == pytest.approx(1.134)
    assert COSTS.decisions_per_s(10, units=2) == pytest.approx(20_000 / 1.134)


def test_no_number_of_runners_gets_beyond_the_ceiling():
    assert COSTS.ceiling() == pytest.approx(200_000)
    speeds = [COSTS.decisions_per_s(10**power, units=50) for power in range(7)]
    assert speeds == sorted(speeds)
    assert speeds[-1] < COSTS.ceiling()
    # Calls cost 2 us a decision where a runner has one unit of 1,000: 5 + 2.1 instead of 5.
    assert COSTS.decisions_per_s(10**6) == pytest.approx(1 / 7.1e-6, rel=1e-3)


def test_runners_for_a_share_of_the_ceiling():
    count = COSTS.runners_for(0.8, units=50)
    assert COSTS.decisions_per_s(count, 50) >= 0.8 * COSTS.ceiling()
    assert COSTS.decisions_per_s(int(count * 0.98) - 1, 50) < 0.8 * COSTS.ceiling()
    assert COSTS.runners_for(0.8) == 0  # with one unit each, calls alone keep it below


def test_costs_are_found_again():
    measured = [
        IterationParts(
            n, n * rows, Parts(0.01 + n * 0.0001, 0.5, 0.003 + n * 0.002 + n * rows * 1e-6)
        )
        for n, rows in ((2, 100), (2, 1000), (4, 1000), (8, 100), (8, 1000))
    ]
    found = fit(measured, 0.5, 1000).with_learning([0.004, 0.016], [1000, 4000])
    for name in Costs.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(COSTS, name), rel=1e-6), name


def test_no_cost_is_below_zero():
    """Noise may say that more runners take less time; the model does not believe it."""
    measured = [IterationParts(n, n * 10, Parts(0.1 / n, 0.0, 0.1 / n)) for n in (1, 2, 8)]
    found = fit(measured, 1.0, 10)
    assert (found.fetch_s, found.call_s, found.row_s) == (0, 0, 0)
    # What is left is the constant c with the least sum of (1 - c / value)^2.
    inverse = np.array([10.0, 20.0, 80.0])
    constant = inverse.sum() / (inverse**2).sum()
    assert (found.broadcast_s, found.gather_s) == pytest.approx((constant, constant))


def test_a_stand_in_returns_what_a_runner_does(monkeypatch):
    rows, episodes = 12, 4
    answer = Rollouts(
        states=np.zeros((rows, 5), np.uint8),
        actions=np.zeros(rows, np.int32),
        log_probabilities=np.zeros(rows, np.float32),
        rewards=np.zeros(rows),
        row=np.repeat(np.arange(episodes, dtype=np.int32), 3),
        episode=np.repeat(np.arange(episodes, dtype=np.int32), 3),
        decision=np.tile(np.arange(3, dtype=np.int32), episodes),
        time=np.zeros(rows, np.int32),
        jobset=np.zeros(episodes, np.int32),
        outcome={"weight": np.ones(episodes, np.int32)},
    )
    monkeypatch.setattr("ray.get", lambda reference: reference)
    stand_in = StandIn(answer, 0.0)
    units = (SampleUnit(3, 0, (0,)), SampleUnit(5, 0, (0,)))
    whole = stand_in.sample(request=SampleRequest(units, {}, 7))
    assert whole.version == 7
    assert whole.answers.keys() == {3, 5}
    np.testing.assert_array_equal(whole.answers[3].episode, answer.episode)
    assert whole.answers[3].states is not whole.answers[5].states
    stand_in.change(5, 0.05)
    cut = stand_in.sample(request=SampleRequest(units, {}, 8))
    assert cut.seconds >= 0.1
    assert cut.answers[5].num_rows == 5
    assert cut.answers[5].num_episodes == episodes


def test_algorithms_without_rows_are_refused(capsys):
    assert cli.run(bench.command, ["scaling", "--preset", "deeprm-maml"]) == 2
    assert "reinforce or ppo" in capsys.readouterr().err
