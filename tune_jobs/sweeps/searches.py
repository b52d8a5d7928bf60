"""The searches by name: what each allows in a sweep, and what Ray Tune runs it with.

A search of your own is a subclass of `Search`; an instance of it is registered in `SEARCHES`. What
imports Ray stays inside methods, because Ray must not be imported before it is started.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field
from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from rllib_configs.dimensions import Dimension
from rllib_configs.options import adjustable_settings
from rllib_configs.sections import Count, Section

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

SETTINGS = "settings"
"""What Ray Tune's config of a trial holds: the settings of the space, by key."""

SCORE, SCORED_AT = "score", "scored_at"
"""In a trial's results: what ranks it, and the iteration at which that was new; 0 before."""


class AshaSection(Section):
    """When ASHA stops trials: at the grace period and each time that it is multiplied."""

    grace: Count = 1
    """Iterations that every trial may do; evaluations must have happened by then."""
    reduction: Annotated[float, Field(gt=1)] = 3.0
    """Of so many trials that get to a rung one goes on, and the next rung is so much later."""


class PbtSection(Section):
    """How a population evolves."""

    interval: Count = 10
    """Iterations between two times at which the worst take over from the best."""
    quantile: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """Share of the trials that take over, and of those that are taken from."""
    resample: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Probability that a setting is drawn anew rather than multiplied by 0.8 or 1.2, or moved to a
    neighbor in its list."""


class SearchedSweep(Protocol):
    """The part of a sweep that a search reads; see `tune_jobs.sweeps.definition.Sweep`."""

    @property
    def space(self) -> Mapping[str, Dimension]:
        """Settings that differ."""

    mode: Literal["min", "max"]
    trials: int
    asha: AshaSection
    pbt: PbtSection


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

    def scheduler(self, sweep: SearchedSweep, num_iterations: int) -> "TrialScheduler | None":
        """Who stops trials early, or has them take over from others; by default nobody.

        Args:
            sweep: what is searched.
            num_iterations: of a trial that is not stopped.
        """
        return None

    def searcher(
        self, sweep: SearchedSweep, seed: int, scored: Sequence[tuple[Mapping[str, Any], float]]
    ) -> "Searcher | None":
        """Who says what to try next; None where that was drawn beforehand.

        Args:
            sweep: what is searched.
            seed: of its draws.
            scored: settings and scores of trials that are over.
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

    def scheduler(self, sweep: SearchedSweep, num_iterations: int) -> "TrialScheduler":
        """Successive halving."""
        from ray.tune.schedulers import ASHAScheduler

        return ASHAScheduler(
            time_attr=SCORED_AT,
            metric=SCORE,
            mode=sweep.mode,
            max_t=num_iterations,
            grace_period=sweep.asha.grace,
            reduction_factor=sweep.asha.reduction,
        )


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

    def scheduler(self, sweep: SearchedSweep, num_iterations: int) -> "TrialScheduler":
        """Population based training; all trials wait for each other after each interval."""
        from ray.tune.schedulers import PopulationBasedTraining

        def keep_in_range(config: dict[str, Any]) -> dict[str, Any]:
            settings = config[SETTINGS]
            for key, dimension in sweep.space.items():
                if dimension.values is None:
                    settings[key] = dimension.clip(settings[key])
            return config

        mutations = {
            key: _domain(dimension) if dimension.values is None else list(dimension.values)
            for key, dimension in sweep.space.items()
        }
        return PopulationBasedTraining(
            time_attr=SCORED_AT,
            metric=SCORE,
            mode=sweep.mode,
            perturbation_interval=sweep.pbt.interval,
            hyperparam_mutations={SETTINGS: mutations},
            quantile_fraction=sweep.pbt.quantile,
            resample_probability=sweep.pbt.resample,
            custom_explore_fn=keep_in_range,
            log_config=False,
            synch=True,
        )


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
        self, sweep: SearchedSweep, seed: int, scored: Sequence[tuple[Mapping[str, Any], float]]
    ) -> "Searcher":
        """Optuna, told the scores of trials that are over."""
        import optuna
        from ray.tune.search.optuna import OptunaSearch as TuneOptuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        space = {key: _domain(dimension) for key, dimension in sweep.space.items()}
        points = [{f"{SETTINGS}/{key}": value for key, value in each.items()} for each, _ in scored]
        return TuneOptuna(
            TuneOptuna.convert_search_space({SETTINGS: space}),
            metric=SCORE,
            mode=sweep.mode,
            seed=seed,
            points_to_evaluate=points or None,
            evaluated_rewards=[score for _, score in scored] or None,
        )


def _refuse_grids(name: str, sweep: SearchedSweep) -> None:
    for key, dimension in sweep.space.items():
        if dimension.grid is not None:
            raise PydanticCustomError(
                "no_grid",
                "the search {search} takes no grids, so make {key} a choice",
                {"search": name, "key": key},
            )


def _domain(dimension: Dimension) -> Any:
    """A dimension in Ray Tune's terms."""
    from ray import tune

    if dimension.values is not None:
        return tune.choice(list(dimension.values))
    low, high = dimension.range
    if dimension.integer is not None:
        return tune.randint(int(low), int(high) + 1)
    return (tune.uniform if dimension.log_uniform is None else tune.loguniform)(low, high)


SEARCHES: Registry[Search] = Registry("search")
SEARCHES.register("grid")(GridSearch())
SEARCHES.register("random")(Search())
SEARCHES.register("asha")(AshaSearch())
SEARCHES.register("pbt")(PbtSearch())
SEARCHES.register("optuna")(OptunaSearch())
