"""How a site weighs what counts in the order of its queue."""

import math
from dataclasses import dataclass

from cluster_env.core.checks import require_option_types
from cluster_env.core.errors import InputError


@dataclass(frozen=True)
class Weights:
    """What counts in the order `priority`, as sites weigh it.

    Attributes:
        age: weight of the waiting time, which counts up to a week.
        size: weight of the share of the machine that is asked for.
        fair_share: weight of 2^(-usage / fair usage) of the job's user, where usage is what the
            user's finished jobs held and fades by half in a week, or in the half-life of a site.
        partition: weight of the priority of the job's partition over the highest, at a site.
        qos: weight of the priority of the job's QOS over the highest, at a site.
    """

    age: float = 1000.0
    size: float = 500.0
    fair_share: float = 2000.0
    partition: float = 0.0
    qos: float = 0.0

    def __post_init__(self) -> None:
        require_option_types(self)
        for name in ("age", "size", "fair_share", "partition", "qos"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"the weight {name} must be finite, but is {getattr(self, name)}")
