"""Servers learn by themselves, and what they reach depends on nothing but their seeds."""

from dataclasses import replace

import numpy as np
import pytest

from rllib_configs.worlds.accrual.servers import (
    COLUMNS,
    POLICIES,
    Learning,
    Setting,
    experiment,
    learn_values,
)
from tests.cluster_env.worlds.accrual.plain import plain_experiment

SMALL = Setting(rate=0.15, steps=600, experiments=3, learning=Learning(steps=800))


def test_every_policy_is_measured_on_the_same_arrivals() -> None:
    outcomes = {(one.policy, one.column): one for one in experiment(SMALL)}
    assert set(outcomes) == {(policy, column) for policy in POLICIES for column in COLUMNS}
    for one in outcomes.values():
        assert (one.productivity > 0).all()
        assert (one.productivity <= 24 * 600).all()
        assert (one.utilization < 1).all()
    columns = [outcomes["none", column].productivity for column in COLUMNS]
    assert (columns[0] == columns[1]).all()
    assert (columns[0] == columns[2]).all()
    assert (outcomes["aggressive", "both"].productivity > columns[0]).all()


def test_all_policies_earn_what_they_earn_in_plain_python() -> None:
    few = replace(SMALL, experiments=2)
    outcomes = {(one.policy, one.column): one for one in experiment(few)}
    for index in range(2):
        for policy, column, utility in plain_experiment(few, index):
            assert outcomes[policy, column].productivity[index] == pytest.approx(utility, rel=1e-9)


def test_an_experiment_does_not_depend_on_those_beside_it() -> None:
    [one] = experiment(SMALL, ["utility"], ["both"])
    [fewer] = experiment(replace(SMALL, experiments=2), ["utility"], ["both"])
    assert one.parameters is not None
    assert fewer.parameters is not None
    np.testing.assert_array_equal(one.parameters[:2], fewer.parameters)
    np.testing.assert_array_equal(one.productivity[:2], fewer.productivity)
    assert len(np.unique(one.parameters[:, 0])) == 3


@pytest.mark.parametrize("values", ["rulebase", "network"])
def test_more_steps_go_on_from_where_fewer_stopped(values: str) -> None:
    """Updates depend on what came before alone, so that a longer run passes through a shorter."""
    short = replace(SMALL, learning=Learning(values=values, steps=800, rate=0.001))
    learners = learn_values(short, "preempt")
    again = learn_values(short, "preempt")
    np.testing.assert_array_equal(learners.p, again.p)
    assert (learners.memory["count"] > 10).all()
    assert np.isfinite(learners.p).all()
