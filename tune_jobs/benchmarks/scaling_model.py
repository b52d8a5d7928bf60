"""What an iteration costs with any number of runners, from costs that were measured with a few.

With n runners and u units each, an iteration with k rounds (one for REINFORCE, one more for each
update of PPO) takes

    T(n) = u t + k (a + n c)

t is what a unit takes where it is done, all rounds together; a what a round takes whoever is asked:
the learner's step, and a call there and back; c what each further runner takes of the driver's
time: a call, its answer, and the addition of a gradient. What runners do, they do side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Costs:
    """The measured costs; see the formula above.

    Attributes:
        unit_s: t.
        unit_decisions: decisions of a unit.
        rounds: k.
        round_s: a.
        call_s: c.
    """

    unit_s: float
    unit_decisions: float
    rounds: int
    round_s: float
    call_s: float

    def seconds(self, runners: int, units: int = 1) -> float:
        """Of an iteration, with so many units for each runner."""
        return units * self.unit_s + self.rounds * (self.round_s + runners * self.call_s)

    def decisions_per_s(self, runners: int, units: int = 1) -> float:
        """Of all runners together."""
        return runners * units * self.unit_decisions / self.seconds(runners, units)

    def speedup(self, runners: int, units: int = 1) -> float:
        """How many times the decisions a second of one runner."""
        return self.decisions_per_s(runners, units) / self.decisions_per_s(1, units)


def fit(
    runners: Sequence[int],
    seconds: Sequence[float],
    unit_s: float,
    unit_decisions: float,
    rounds: int,
) -> Costs:
    """Least squares of relative errors, with no cost below 0.

    Args:
        runners: in each iteration that was timed, a unit for each; at least two numbers.
        seconds: that it took.
        unit_s: see `Costs`, as the next two.
        unit_decisions: as well.
        rounds: as well.
    """
    spent = np.maximum(np.array(seconds) - unit_s, 1e-9)
    columns = rounds * np.stack([np.ones(len(spent)), np.array(runners, float)], axis=1)
    (round_s, call_s), _ = nnls(columns / spent[:, None], np.ones(len(spent)))
    return Costs(unit_s, unit_decisions, rounds, float(round_s), float(call_s))
