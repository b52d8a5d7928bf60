"""Values of server states: the fuzzy rulebase (sections 3.2 and 3.3) and a small network.

Both are functions of (x1, x2 / MaxJobLength, x3 / N), each between 0 and 1, with a vector of
parameters; learning needs no more than the value and its gradient.
"""

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.compiled import njit_kernel

RULEBASE, NETWORK = range(2)
VALUE_FUNCTIONS = ("rulebase", "network")

RULES = ("SSS", "SSL", "SLS", "SLL", "LSS", "LSL", "LLS", "LLL")
"""Labels of x1, x2 and x3, small or large, in the eight rules of section 3.3."""

PAPER_RULEBASE = (-0.97, -0.25, -0.86, -0.39, 0.48, -0.85, 4.03, 0.19)
"""What the paper's policy of preemption and squeezing had learned, section 5."""

HIDDEN = 8
"""Width of the network's one layer."""


def num_parameters(kind: int) -> int:
    """How many parameters a value function has."""
    return len(RULES) if kind == RULEBASE else 5 * HIDDEN + 1


def first_parameters(kind: int, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Parameters to begin with, float64 ``(count, num_parameters)``.

    The rulebase begins at 0, as in the paper; the network with normal weights, and an output of 0.
    """
    parameters = np.zeros((count, num_parameters(kind)))
    if kind == NETWORK:
        parameters[:, : 3 * HIDDEN] = rng.standard_normal((count, 3 * HIDDEN))
    return parameters


@njit_kernel
def value_of(kind: int, p: NDArray[np.float64], x1: float, x2: float, x3: float) -> float:
    """The value of a state.

    Args:
        kind: `RULEBASE`, equation 1, whose weights add up to 1; or `NETWORK`: a layer of tanh.
        p: float64 ``(num_parameters,)``.
        x1: mean expected unit utility.
        x2: time to the next finish over MaxJobLength, at most 1.
        x3: share of the processors that is idle.
    """
    if kind == RULEBASE:
        # Each of the eight outputs counts by the product of the degrees to which its labels hold.
        small = (1 - x2) * ((1 - x3) * p[0] + x3 * p[1]) + x2 * ((1 - x3) * p[2] + x3 * p[3])
        large = (1 - x2) * ((1 - x3) * p[4] + x3 * p[5]) + x2 * ((1 - x3) * p[6] + x3 * p[7])
        return float((1 - x1) * small + x1 * large)
    # Weights of the three inputs by hidden unit, then biases, output weights and the last bias.
    total = p[5 * HIDDEN]
    for h in range(HIDDEN):
        inner = p[3 * h] * x1 + p[3 * h + 1] * x2 + p[3 * h + 2] * x3 + p[3 * HIDDEN + h]
        total += p[4 * HIDDEN + h] * np.tanh(inner)
    return float(total)


@njit_kernel
def mean_values(
    kind: int, p: NDArray[np.float64], x: NDArray[np.float32], out: NDArray[np.float64]
) -> None:
    """Writes the mean over value functions, float64 ``(n,)``, of the values of states.

    Parameters are float64 ``(num_functions, num_parameters)``, states float32 ``(n, 3)``, see
    `value_of`.
    """
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(p.shape[0]):
            total += value_of(
                kind, p[k], np.float64(x[i, 0]), np.float64(x[i, 1]), np.float64(x[i, 2])
            )
        out[i] = total / p.shape[0]


@njit_kernel
def write_gradient(
    kind: int, p: NDArray[np.float64], x1: float, x2: float, x3: float, out: NDArray[np.float64]
) -> None:
    """Writes the derivative of `value_of` by each parameter; of a rulebase, weights of rules."""
    if kind == RULEBASE:
        # Bits of a rule's number say which of its labels are large, that of x1 is the highest.
        for i in range(8):
            of_1 = x1 if i & 4 else 1 - x1
            of_2 = x2 if i & 2 else 1 - x2
            of_3 = x3 if i & 1 else 1 - x3
            out[i] = of_1 * of_2 * of_3
        return
    # The derivative of tanh is 1 - tanh^2.
    for h in range(HIDDEN):
        inner = p[3 * h] * x1 + p[3 * h + 1] * x2 + p[3 * h + 2] * x3 + p[3 * HIDDEN + h]
        bent = np.tanh(inner)
        slope = p[4 * HIDDEN + h] * (1 - bent * bent)
        out[3 * h], out[3 * h + 1], out[3 * h + 2] = slope * x1, slope * x2, slope * x3
        out[3 * HIDDEN + h], out[4 * HIDDEN + h] = slope, bent
    out[5 * HIDDEN] = 1.0
