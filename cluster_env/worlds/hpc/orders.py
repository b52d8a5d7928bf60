"""A rule or a scorer as compiled code reads it, for the jobs that are loaded."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.worlds.hpc.rules import (
    BACKFILLING,
    EASY,
    NO_FORMULA,
    PRIORITY,
    SCORED,
    RuleTable,
)
from cluster_env.worlds.hpc.scorer import JOB_FEATURES, Scorer
from cluster_env.worlds.hpc.seen import Scoring

_NO_SCORER = Scorer.linear("easy")
_MOVING = tuple(JOB_FEATURES.index(name) for name in ("of_free", "fits"))


class Order(NamedTuple):
    """Who goes first, what may start before the first job, and what has to be kept for that."""

    rule: RuleTable  # its kind is SCORED for a scorer
    bonus: NDArray[np.float64]  # (num_jobs,), priority of a job's partition and QOS, or of no job
    scoring: Scoring  # of SCORED
    anew: bool  # whether scores change when a job starts
    shares: bool  # whether what users have used counts
    counts: bool  # whether `cluster_env.worlds.hpc.events.SUMS` are kept
    tracks: bool  # whether it is kept when jobs are expected to end

    @classmethod
    def of_rule(cls, table: RuleTable, bonus: NDArray[np.float64]) -> "Order":
        """That of a rule."""
        return cls(
            rule=table,
            bonus=bonus,
            scoring=Scoring.of(_NO_SCORER),
            anew=False,
            shares=table.kind == PRIORITY,
            counts=False,
            tracks=table.mode >= EASY or table.max_wait > 0,
        )

    @classmethod
    def of_scorer(cls, scorer: Scorer, num_jobs: int, max_wait: int) -> "Order":
        """That of a scorer."""
        table = RuleTable(
            kind=SCORED,
            mode=BACKFILLING.index(scorer.mode),
            score=np.zeros(num_jobs),
            formula=NO_FORMULA,
            submit=np.zeros(0, np.int64),
            weights=np.zeros(3),
            own=0,
            max_wait=max_wait,
        )
        moves = scorer.is_bilinear or bool(scorer.weights[list(_MOVING)].any())
        whole = cls.of_rule(table, np.zeros(num_jobs)).for_decisions()
        return whole._replace(scoring=Scoring.of(scorer), anew=moves, shares=False)

    def for_decisions(self) -> "Order":
        """The same where somebody else decides: all is kept that states show, or a rule may ask."""
        return self._replace(shares=True, counts=True, tracks=True)
