"""Average-reward TD(0) where the values are known, and what a rulebase computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_env.worlds.accrual.td import learn, new_learners
from cluster_env.worlds.accrual.values import (
    NETWORK,
    PAPER_RULEBASE,
    RULEBASE,
    RULES,
    first_parameters,
    num_parameters,
    value_of,
    write_gradient,
)

share = st.floats(0, 1)


@pytest.mark.parametrize("per_time", [False, True])
def test_two_states_get_the_values_of_the_closed_form(per_time: bool) -> None:
    """A goes to B with a, B to A with b; r and s are what leaving a state gives and takes.

    The balance of flows gives rho = (b r_A + a r_B) / (b s_A + a s_B), and the equation of
    evaluation (3) at A, V(A) = r_A - rho s_A + (1 - a) V(A) + a V(B), the difference of values. A
    is where only rule 1 applies and B where only rule 5 does.
    """
    a, b, reward = 0.3, 0.5, (1.0, 4.0)
    steps = (3, 1) if per_time else (1, 1)
    rho = (b * reward[0] + a * reward[1]) / (b * steps[0] + a * steps[1])
    difference = (reward[0] - rho * steps[0]) / a
    it = new_learners(RULEBASE, np.zeros((1, 8)), 0.5, 0.5, 20.0, per_time)
    rng, state, earned, now = np.random.default_rng(0), 0, 0.0, 0
    for chance in rng.random(100_000):
        learn(it, 0, float(state), 0.0, 0.0, earned, now)
        earned, now = earned + reward[state], now + steps[state]
        state = state ^ (chance < (a, b)[state])
    assert it.memory["rho"][0] == pytest.approx(rho, rel=0.02)
    assert it.p[0, 0] - it.p[0, 4] == pytest.approx(difference, rel=0.05)
    assert not it.p[0, [1, 2, 3, 5, 6, 7]].any()


@given(share, share, share)
def test_a_rulebase_is_equation_1(x1: float, x2: float, x3: float) -> None:
    degrees = [{"S": 1 - x, "L": x} for x in (x1, x2, x3)]
    weights = [
        np.prod([d[label] for d, label in zip(degrees, rule, strict=True)]) for rule in RULES
    ]
    expected = np.dot(weights, PAPER_RULEBASE) / sum(weights)
    p, slope = np.array(PAPER_RULEBASE), np.empty(8)
    assert value_of(RULEBASE, p, x1, x2, x3) == pytest.approx(expected, abs=1e-12)
    write_gradient(RULEBASE, p, x1, x2, x3, slope)
    np.testing.assert_allclose(slope, weights, atol=1e-12)


def test_the_networks_gradient_is_that_of_its_value() -> None:
    rng = np.random.default_rng(3)
    p, x = rng.standard_normal(num_parameters(NETWORK)), (0.3, 0.6, 0.1)
    slope, step = np.empty(p.size), 1e-6
    write_gradient(NETWORK, p, *x, slope)
    for k in range(p.size):
        up, down = p.copy(), p.copy()
        up[k], down[k] = p[k] + step, p[k] - step
        difference = (value_of(NETWORK, up, *x) - value_of(NETWORK, down, *x)) / (2 * step)
        assert slope[k] == pytest.approx(difference, abs=1e-8)
    assert value_of(NETWORK, first_parameters(NETWORK, 1, rng)[0], *x) == 0
