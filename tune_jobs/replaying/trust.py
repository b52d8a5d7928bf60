"""How far what-ifs of a log deserve belief: how near today's simulation comes to recorded waits."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.durations import duration
from tune_jobs.replaying import fidelity as near

UNKNOWN = "unknown"

_GRADES = {near.GOOD: "good", near.PARTLY: "fair", near.NOT: "poor"}


@dataclass(frozen=True)
class Trust:
    """A grade and its reason.

    Attributes:
        grade: ``good``, ``fair``, ``poor``, or ``unknown`` where there is nothing to compare with.
        why: a sentence without its full stop.
        recorded: mean recorded wait in seconds; NaN if it is unknown.
        simulated: the same under today's policy.
        gain: see `fidelity.fidelity`.
    """

    grade: str
    why: str
    recorded: float = float("nan")
    simulated: float = float("nan")
    gain: float = float("nan")

    @classmethod
    def of(
        cls,
        policy: str,
        arrival: NDArray[np.int64],
        recorded: NDArray[np.int64] | None,
        simulated: NDArray[np.int64],
        *,
        as_it_was: bool,
    ) -> "Trust":
        """From the waits of jobs at the site and under a policy, int64 ``(num_jobs,)``.

        Args:
            policy: its name.
            arrival: of the jobs, seconds, never falling.
            recorded: at the site; None if the log does not say them.
            simulated: under the policy.
            as_it_was: whether the jobs arrive as recorded.
        """
        if recorded is None:
            return cls(
                UNKNOWN,
                "the log does not record waits, so nothing shows how near the simulation of today "
                "comes to the site",
            )
        if not as_it_was:
            return cls(UNKNOWN, "today's arrivals are scaled, and recorded waits are of others")
        waits = near.RecordedWaits(
            arrival=arrival, recorded=recorded, simulated={policy: simulated}, classes={}, weeks=()
        )
        row = near.in_all(waits).rows[0]
        answer, why = near.verdict(row, 1)
        numbers = {name: float(row[name]) for name in ("recorded", "simulated", "gain")}
        return cls(_GRADES[answer], why.replace(", the one policy,", ""), **numbers)

    @property
    def sentence(self) -> str:
        """For people."""
        return f"Trust in these answers: {self.grade}; {self.why}."

    def too_small(self, change: float) -> list[str]:
        """A sentence where a change of the mean wait, in seconds, is less than today's error."""
        error = abs(self.simulated - self.recorded)
        if np.isnan(error) or abs(change) >= error:
            return []
        return [
            f"the change of the mean wait, {duration(change)}, is smaller than the error of the "
            f"simulation of today, {duration(error)}"
        ]

    @property
    def data(self) -> dict[str, str | float | None]:
        """For programs; what is unknown is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}
