r"""Average-reward TD(0): equations 4 to 6 of section 3.4.

A learner sees states :math:`s_t` one after the other, and what was earned between them:

.. math:: \delta = r_t - \rho_t + \hat V(s_{t+1}) - \hat V(s_t), \quad
          p \leftarrow p + \alpha_t \delta \nabla \hat V(s_t), \quad
          \rho \leftarrow (1 - \alpha_t) \rho + \alpha_t r_t

with the rate :math:`\alpha_t = a / (1 + t / h)`: its sum diverges, that of its squares does not.
The paper takes no account of how much time lies between two states; with ``per_time`` a reward is
held against :math:`\rho` times that time, and :math:`\rho` is the quotient of such averages of
rewards and of times (a semi-Markov process).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import new_records, njit_inlined, njit_kernel
from cluster_env.worlds.accrual.values import value_of, write_gradient

LEARNER = np.dtype(
    [
        *((name, np.float64) for name in ("x1", "x2", "x3")),  # the last state
        ("earned", np.float64),  # at that state, since the beginning of the episode
        ("time", np.int64),  # of that state
        *((name, np.float64) for name in ("reward", "steps")),  # averages between two states
        ("rho", np.float64),  # average reward, the one over the other
        ("count", np.int64),  # updates so far
        ("seen", np.bool_),  # whether there was a state
        ("awaits_change", np.bool_),  # whether the next change brings a state
    ],
    align=True,
)
"""Of a learner, beside its parameters."""


class Learners(NamedTuple):
    """Learners side by side, one for each project on each machine, machine by machine.

    Neighbors may share a value function.
    """

    kind: int  # of the value function
    p: NDArray[np.float64]  # (num_functions, num_parameters), see `function_of`
    memory: NDArray[np.void]  # (num_learners,), see `LEARNER`
    rate: float  # a, of the parameters
    rho_rate: float  # a, of the average reward
    half: float  # h, updates after which the rate has halved
    per_time: bool
    scale: float  # that rewards are divided by
    slope: NDArray[np.float64]  # (num_parameters,), to work in


@njit_inlined
def function_of(learners: Learners, index: int) -> int:
    """Which value function a learner's is: as many neighbors share each."""
    return index * learners.p.shape[0] // learners.memory.size


@njit_kernel
def learn(
    learners: Learners, index: int, x1: float, x2: float, x3: float, earned: float, now: int
) -> None:
    """Takes in the next state of a learner (see `value_of`), and updates its parameters.

    ``earned`` is since the beginning of the episode, ``now`` the clock.
    """
    kind, memory, slope = learners.kind, learners.memory[index], learners.slope
    if memory.seen:
        p = learners.p[function_of(learners, index)]
        reward = (earned - memory.earned) / learners.scale
        steps = float(now - memory.time) if learners.per_time else 1.0
        decay = 1.0 / (1.0 + memory.count / learners.half)
        # The temporal difference, and a step along the gradient at the state before.
        delta = reward - memory.rho * steps + value_of(kind, p, x1, x2, x3)
        delta -= value_of(kind, p, memory.x1, memory.x2, memory.x3)
        write_gradient(kind, p, memory.x1, memory.x2, memory.x3, slope)
        for i in range(p.size):
            p[i] += learners.rate * decay * delta * slope[i]
        # The average reward.
        share = learners.rho_rate * decay
        memory.reward += share * (reward - memory.reward)
        memory.steps += share * (steps - memory.steps)
        memory.rho = memory.reward / memory.steps
        memory.count += 1
    # What the next update goes back to.
    memory.x1, memory.x2, memory.x3 = x1, x2, x3
    memory.seen, memory.earned, memory.time = True, earned, now


def new_learners(
    kind: int,
    p: NDArray[np.float64],
    rate: float,
    rho_rate: float,
    half: float,
    per_time: bool,
    sharing: int = 1,
    scale: float = 1.0,
) -> Learners:
    """Learners that have seen nothing yet, so many `sharing` each function; see `Learners`.

    Their parameters, float64 ``(num_functions, num_parameters)``, are changed. By `scale` the
    values of a rulebase only get smaller; a network learns well where they are near 1.
    """
    memory = new_records(sharing * p.shape[0], LEARNER)
    memory["steps"] = 0.0 if per_time else 1.0  # equation 5 as it stands, from an average of 0
    slope = np.empty(p.shape[1])
    return Learners(kind, p, memory, rate, rho_rate, half, per_time, scale, slope)
