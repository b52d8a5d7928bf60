"""Where DeepRM's paper and its released code differ, as switches."""

from dataclasses import dataclass
from typing import Literal

from cluster_env.core.registry import Registry


@dataclass(frozen=True)
class Rules:
    """Rules of the timeline simulator.

    Attributes:
        try_last_start: whether a job may start in the last step of the horizon that leaves room for
            it. The released code never tries that step, so a job as long as the horizon never runs.
        linger_finished: whether the removal of a finished job hides the job listed behind it for
            one step, as in the released code, which deletes from the list that it iterates over. A
            hidden finished job still costs and prolongs the episode.
        drop_when_backlog_full: whether a job that finds the backlog full is lost, as in the
            released code; otherwise it waits, and observations show a full backlog.
        charge_after_step: whether a step is charged for the jobs in the system after it, as in the
            released code, or for those during it. Only the latter charges jobs that arrive before
            the first decision in full.
        stop: end of an episode: ``all_done`` when the arrival window is over and every job has
            finished, ``no_new_job`` when the arrival window is over.
        first_arrival: first time step in which jobs of a workload arrive. 1 repeats the released
            code, where the first job of a sequence never arrives; the simulator itself accepts any
            arrival.
    """

    try_last_start: bool = True
    linger_finished: bool = False
    drop_when_backlog_full: bool = False
    charge_after_step: bool = False
    stop: Literal["all_done", "no_new_job"] = "all_done"
    first_arrival: int = 0


PAPER_RULES = Rules()
RELEASED_RULES = Rules(
    try_last_start=False,
    linger_finished=True,
    drop_when_backlog_full=True,
    charge_after_step=True,
    first_arrival=1,
)

RULES: Registry[Rules] = Registry("rules")
RULES.register("paper")(PAPER_RULES)
RULES.register("released")(RELEASED_RULES)
