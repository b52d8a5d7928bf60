"""How far answers about a log deserve belief: how near a simulation comes to recorded waits."""

from collections.abc import Mapping
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
        simulated: the same under the policy that comes nearest.
        gain: see `fidelity.fidelity`.
        policy: the one that comes nearest, of those that the site may have had.
    """

    grade: str
    why: str
    recorded: float = float("nan")
    simulated: float = float("nan")
    gain: float = float("nan")
    policy: str = ""

    @classmethod
    def of(
        cls,
        arrival: NDArray[np.int64],
        recorded: NDArray[np.int64] | None,
        simulated: Mapping[str, NDArray[np.int64]],
        *,
        as_it_was: bool,
    ) -> "Trust":
        """From the waits of jobs at the site and under policies, int64 ``(num_jobs,)``.

        Args:
            arrival: of the jobs, seconds, never falling.
            recorded: at the site; None if the log does not say them.
            simulated: under each policy that the site may have had.
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
            arrival=arrival, recorded=recorded, simulated=simulated, classes={}, weeks=()
        )
        row = near.in_all(waits).rows[0]
        answer, why = near.verdict(row, len(simulated))
        numbers = {name: float(row[name]) for name in ("recorded", "simulated", "gain")}
        why = why.replace(", the one policy,", "")
        return cls(_GRADES[answer], why, **numbers, policy=str(row["policy"]))

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
            f"The change of the mean wait, {duration(change)}, is smaller than the error of the "
            f"simulation of today, {duration(error)}."
        ]

    def gained(self, policy: str, mean_wait: float) -> list[str]:
        """A sentence on how much of what a policy gains on the record is not its own.

        Args:
            policy: its name.
            mean_wait: of the jobs under it, in seconds.
        """
        gained, before = self.recorded - mean_wait, self.recorded - self.simulated
        if policy == self.policy or gained <= 0 or before <= 0:
            return []
        share = duration(before) if before < gained else "all"
        return [
            f"Compare policies with {self.policy}, not with the record: of the {duration(gained)} "
            f"that {policy} gains on the record, {share} is the error of the simulation."
        ]

    @property
    def data(self) -> dict[str, str | float | None]:
        """For programs; what is unknown is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}
