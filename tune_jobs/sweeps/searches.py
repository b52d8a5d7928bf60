"""The searches by name: what each allows in a sweep, and what it needs of Ray Tune.

A search of your own is a subclass of `Search`; an instance of it is registered in `SEARCHES`. What
imports Ray stays inside methods, because Ray must not be imported before it is started.
"""

import importlib.util
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from rllib_configs.options import adjustable_settings
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.searched import Point, SearchedSweep

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher


class Search:
    """Random search: settings are drawn beforehand, and every trial runs to its end.

    Attributes:
        draws_beforehand: whether settings do not depend on results.
        changes_settings: whether a trial's settings change while it runs.
        waits_for_all: whether trials wait for each other, so that all have to be started.
    """

    draws_beforehand = True
    changes_settings = False
    waits_for_all = False

    def check(self, sweep: SearchedSweep) -> None:
        """Finds out whether it goes with a definition.

        Raises:
            PydanticCustomError: if not.
        """

    def check_key(self, key: str) -> None:
        """Finds out whether it can search a setting.

        Raises:
            InputError: if not.
        """

    def check_installed(self) -> None:
        """Makes sure that what it needs is installed.

        Raises:
            InputError: if not.
        """

    def first_decision(self, sweep: SearchedSweep) -> tuple[str, int] | None:
        """Setting and number of iterations after which it first compares trials, if it does."""
        return None

    def scheduler(
        self,
        sweep: SearchedSweep,
        num_iterations: int,
        num_slots: int,
        begun: Sequence[tuple[int, Sequence[MetricRow]]],
    ) -> "TrialScheduler":
        """Who stops trials early.

        Args:
            sweep: what is searched.
            num_iterations: of a trial that is not stopped.
            num_slots: trials that run at a time.
            begun: trials from before an interruption: index, and rows of metrics.
        """
        from ray.tune.schedulers import FIFOScheduler

        return FIFOScheduler()

    def searcher(
        self,
        sweep: SearchedSweep,
        scored: Sequence[tuple[Point, float]],
        left: Sequence[Point],
        announce: Callable[[Point], None],
    ) -> "Searcher | None":
        """Who says what to try next; None where that was drawn beforehand.

        Args:
            sweep: what is searched.
            scored: trials that are over, with their scores, from before an interruption.
            left: trials to go on with first.
            announce: called with each point before its trial starts.
        """
        return None


class GridSearch(Search):
    """Every combination of the grids."""

    def check(self, sweep: SearchedSweep) -> None:
        """Refuses what is no grid."""
        for key, dimension in sweep.space.items():
            if dimension.grid is None:
                raise PydanticCustomError(
                    "grid", "the search grid takes grids only, but {key} is none", {"key": key}
                )


class AshaSearch(Search):
    """Random search that stops the trials that fall behind."""

    def first_decision(self, sweep: SearchedSweep) -> tuple[str, int] | None:
        """The grace period."""
        return "asha.grace", sweep.asha.grace

    def scheduler(
        self,
        sweep: SearchedSweep,
        num_iterations: int,
        num_slots: int,
        begun: Sequence[tuple[int, Sequence[MetricRow]]],
    ) -> "TrialScheduler":
        """Successive halving, told what trials did before."""
        from tune_jobs.sweeps.schedulers import Halving

        halving = Halving(sweep, num_iterations)
        for index, rows in begun:
            halving.replay(index, rows, sweep.metric, sweep.average)
        return halving


class PbtSearch(Search):
    """A population whose worst take over from the best."""

    changes_settings = True
    waits_for_all = True

    def check(self, sweep: SearchedSweep) -> None:
        """Refuses grids, and a population of one."""
        _refuse_grids("pbt", sweep)
        if sweep.trials < 2:
            raise PydanticCustomError("population", "pbt needs at least 2 trials", {})

    def check_key(self, key: str) -> None:
        """Refuses what cannot change in the middle of a run."""
        adjustable = adjustable_settings()
        if key not in adjustable:
            raise InputError(
                f"pbt changes settings in the middle of a run, which {key} does not allow; "
                f"it can search {', '.join(adjustable)}"
            )

    def first_decision(self, sweep: SearchedSweep) -> tuple[str, int] | None:
        """The first interval."""
        return "pbt.interval", sweep.pbt.interval

    def scheduler(
        self,
        sweep: SearchedSweep,
        num_iterations: int,
        num_slots: int,
        begun: Sequence[tuple[int, Sequence[MetricRow]]],
    ) -> "TrialScheduler":
        """Population based training."""
        from tune_jobs.sweeps.schedulers import Evolution

        return Evolution(sweep, num_slots)


class OptunaSearch(Search):
    """What to try next depends on what came out (TPE)."""

    draws_beforehand = False

    def check(self, sweep: SearchedSweep) -> None:
        """Refuses grids."""
        _refuse_grids("optuna", sweep)

    def check_installed(self) -> None:
        """Looks for Optuna, which is an extra."""
        if importlib.util.find_spec("optuna") is None:
            raise InputError(
                "the search optuna needs the package optuna: pip install 'metasched[optuna]'"
            )

    def searcher(
        self,
        sweep: SearchedSweep,
        scored: Sequence[tuple[Point, float]],
        left: Sequence[Point],
        announce: Callable[[Point], None],
    ) -> "Searcher | None":
        """Optuna, told the scores from before."""
        from tune_jobs.sweeps.searchers import OptunaTrials

        return OptunaTrials(sweep, scored, left, len(scored) + len(left), announce)


def _refuse_grids(name: str, sweep: SearchedSweep) -> None:
    for key, dimension in sweep.space.items():
        if dimension.grid is not None:
            raise PydanticCustomError(
                "no_grid",
                "the search {search} takes no grids, so make {key} a choice",
                {"search": name, "key": key},
            )


SEARCHES: Registry[Search] = Registry("search")
SEARCHES.register("grid")(GridSearch())
SEARCHES.register("random")(Search())
SEARCHES.register("asha")(AshaSearch())
SEARCHES.register("pbt")(PbtSearch())
SEARCHES.register("optuna")(OptunaSearch())
