"""The searches by name: what each allows in a sweep, and what Ray Tune runs it with.

A search of your own is a subclass of `Search`; an instance of it is registered in `SEARCHES`. What
imports Ray stays inside methods, because Ray must not be imported before it is started.
"""

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from cluster_env.core.errors import InputError
from cluster_env.core.registry import Registry
from rllib_configs.config.dimensions import Dimension
from rllib_configs.config.options import adjustable_settings
from tune_jobs.sweeps.searched import SCORE, SCORED_AT, SETTINGS, SearchedSweep, Settings

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

    def scheduler(self, sweep: SearchedSweep, num_iterations: int) -> "TrialScheduler | None":
        """Who stops trials early, or has them take over from others; by default nobody.

        Args:
            sweep: what is searched.
            num_iterations: of a trial that is not stopped.
        """
        return None

    def searcher(
        self, sweep: SearchedSweep, seed: int, scored: Sequence[tuple[Settings, float]]
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
        """Successive halving, of each task by itself."""
        from ray.tune.schedulers import ASHAScheduler

        from tune_jobs.sweeps.per_task import SchedulerPerTask

        def bracket() -> ASHAScheduler:
            return ASHAScheduler(
                time_attr=SCORED_AT,
                metric=SCORE,
                mode=sweep.mode,
                max_t=num_iterations,
                grace_period=sweep.asha.grace,
                reduction_factor=sweep.asha.reduction,
            )

        return SchedulerPerTask(sweep.task_keys, bracket)


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
        from tune_jobs.sweeps.population import Population

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
        return Population(
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
        """Refuses grids, and a space of tasks alone."""
        _refuse_grids("optuna", sweep)
        if len(sweep.task_keys) == len(sweep.space):
            raise PydanticCustomError(
                "tasks_only",
                "optuna compares trials of one task, but the space holds tasks only; "
                "add a setting like training.lr, or use the search random",
                {},
            )

    def check_installed(self) -> None:
        """Looks for Optuna, which is an extra."""
        if importlib.util.find_spec("optuna") is None:
            raise InputError(
                "the search optuna needs the package optuna: pip install 'metasched[optuna]'"
            )

    def searcher(
        self, sweep: SearchedSweep, seed: int, scored: Sequence[tuple[Settings, float]]
    ) -> "Searcher":
        """A study of each task, told the scores of its trials that are over.

        All studies have the same seed, so they begin with the same settings.
        """
        import optuna
        from ray.tune.search.optuna import OptunaSearch as TuneOptuna

        from tune_jobs.sweeps.per_task import SearcherPerTask

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        keys = [key for key in sweep.space if key not in sweep.task_keys]
        space = TuneOptuna.convert_search_space(
            {SETTINGS: {key: _domain(sweep.space[key]) for key in keys}}
        )

        def study(of_task: Sequence[tuple[Settings, float]]) -> "Searcher":
            points = [{f"{SETTINGS}/{key}": each[key] for key in keys} for each, _ in of_task]
            return TuneOptuna(
                space,
                metric=SCORE,
                mode=sweep.mode,
                seed=seed,
                points_to_evaluate=points or None,
                evaluated_rewards=[score for _, score in of_task] or None,
            )

        return SearcherPerTask(sweep, scored, study)


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
