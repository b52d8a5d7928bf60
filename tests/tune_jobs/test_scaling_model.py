"""The model of an iteration: its formula by hand, and costs found again in made-up measurements."""

from dataclasses import replace

import numpy as np
import pytest

import meta.maml.options  # noqa: F401  registers maml, as the command would
from rllib_configs.runners.requests import Request, Round
from rllib_configs.runners.sampling import SampleUnit
from rllib_configs.runners.sums import Part
from tune_jobs import bench, cli
from tune_jobs.benchmarks.measuring import Sample
from tune_jobs.benchmarks.scaling import CHECKED, SMALL, Spent, costs_of, seconds_by_cpu
from tune_jobs.benchmarks.scaling_model import Costs, Layout
from tune_jobs.benchmarks.stand_ins import StandIn

COSTS = Costs(
    unit_s=0.5,
    unit_decisions=1000,
    rounds=3,
    round_s=0.002,
    hop_s=0.001,
    machine_s=0.0001,
    runner_s=0.0002,
    answer_s=0.0004,
)


def test_an_iteration_by_hand():
    assert COSTS.seconds(Layout(10), units=2) == pytest.approx(1.0 + 3 * (0.002 + 0.001))
    assert COSTS.seconds(Layout(10, 8)) == pytest.approx(0.5 + 3 * (0.003 + 0.001 + 0.0016))
    assert COSTS.decisions_per_s(64, units=2) == pytest.approx(128_000 / (1 + 3 * 0.0096))
    assert COSTS.speedup(64) == pytest.approx(64 * 0.5063 / 0.5288)


def test_stand_ins_share_the_cores_of_a_machine_by_hand():
    direct = 0.5 + 3 * (0.002 + (0.001 + 0.004) / 2)
    assert COSTS.crowded_seconds(Layout(10), cores=2) == pytest.approx(direct)
    stations = 0.5 + 3 * (0.003 + (0.001 + 80 * 0.0006) / 2)
    assert COSTS.crowded_seconds(Layout(10, 8), cores=2) == pytest.approx(stations)


def test_runners_fill_machines():
    assert Layout.of(1) == Layout(1)
    assert Layout.of(10) == Layout(1, 10)
    assert Layout.of(100) == Layout(4, 25)
    assert Layout.of(1000) == Layout(32, 32)
    assert (Layout(7).total, Layout(2, 5).total) == (7, 10)


def test_speed_ends_where_calls_take_all_the_time():
    speeds = [COSTS.decisions_per_s(32**power) for power in range(6)]
    assert speeds == sorted(speeds)
    assert speeds[-1] == pytest.approx(32_000 / (3 * 0.0001), rel=1e-2)


def test_costs_are_found_again():
    """A driver spends something of its own on a round, and so does a station."""
    spent = {
        layout: Spent(
            Sample((COSTS.seconds(layout) - 3e-4 * (layout.runners == 1),)),
            0.003 + layout.machines * COSTS.machine_s,
            layout.machines * (0.001 + layout.runners * COSTS.runner_s),
            layout.total * COSTS.answer_s,
        )
        for layout in SMALL
    }
    found = costs_of(spent, 0.5, 1000, 3)
    expected = replace(COSTS, hop_s=COSTS.hop_s - 1e-4)
    assert vars(found) == pytest.approx(vars(expected))


def test_no_cost_is_below_zero():
    """Noise may say that more runners take less time; the model does not believe it."""
    spent = {
        k: Spent(Sample((1.0 / n,)), 0.1 / n, 0.1 / n, 0.1 / n) for n, k in enumerate(SMALL, 1)
    }
    found = costs_of(spent, 2.0, 1000, 3)
    assert found.machine_s == found.runner_s == found.answer_s == found.round_s == found.hop_s == 0


def test_a_measurement_is_the_median_of_its_passes_whatever_a_slow_one_says():
    passes = [Spent(Sample((t, t)), t, 2 * t, 3 * t) for t in (1.0, 90.0, 1.5)]
    found = Spent.median(passes)
    assert found.seconds.median == 1.5
    assert (found.driver_s, found.stations_s, found.stand_ins_s) == (1.5, 3.0, 4.5)


def test_the_formula_with_the_cpu_time_of_all_processes_by_hand():
    """What one stand-in alone takes of the CPU is in the way there and back already."""
    spent = {
        Layout(1): Spent(Sample((0.5,)), 0.001, 0.002, 0.003),
        CHECKED: Spent(Sample((0.6,)), 0.005, 0.012, 0.019),
    }
    assert seconds_by_cpu(COSTS, spent, cores=2) == pytest.approx(0.5 + 3 * (0.003 + 0.015))


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
