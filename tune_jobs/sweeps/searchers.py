"""What to try next, given what came out: Optuna, an extra."""

from collections.abc import Callable, Sequence
from typing import Any

from ray.tune.search import Searcher

from cluster_env.core.seeding import Purpose, generator
from rllib_configs.dimensions import Dimension
from tune_jobs.sweeps.searched import Point, SearchedSweep, Stream


class OptunaTrials(Searcher):
    """Asks Optuna (TPE) for settings, and numbers the trials.

    Args:
        sweep: what it is.
        scored: trials that are over, with their scores, from before an interruption.
        left: trials to go on with first.
        next_index: number of the first new trial.
        announce: called with each point before its trial starts.
    """

    def __init__(
        self,
        sweep: SearchedSweep,
        scored: Sequence[tuple[Point, float]],
        left: Sequence[Point],
        next_index: int,
        announce: Callable[[Point], None],
    ) -> None:
        super().__init__(metric="score", mode=sweep.mode)
        import optuna  # an extra
        from ray.tune.search.optuna import OptunaSearch

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._sweep = sweep
        self._left = list(left)
        self._next = next_index
        self._announce = announce
        self._points: dict[str, Point] = {}
        self._gone_on_with: set[str] = set()
        rng = generator(sweep.seed, Purpose.SWEEP, Stream.SEARCHER, next_index)
        self._optuna = OptunaSearch(
            {key: _distribution(dim) for key, dim in sweep.space.items()},
            metric="score",
            mode=sweep.mode,
            seed=int(rng.integers(1, 1 << 32)),
        )
        for point, score in scored:
            self._tell(point, score)

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The next trial, as `SweepTrial` takes it."""
        if self._left:
            point = self._left.pop(0)
            self._gone_on_with.add(trial_id)
        else:
            found = self._optuna.suggest(trial_id)
            if found is None:
                return None
            point = Point(self._next, self._from_optuna(found))
            self._next += 1
        self._points[trial_id] = point
        self._announce(point)
        return {"trial": point.as_trial()}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tells Optuna the score."""
        score = (result or {}).get("score", float("nan"))
        if trial_id in self._gone_on_with:
            self._tell(self._points[trial_id], score)
        elif score == score:
            self._optuna.on_trial_complete(trial_id, {"score": score}, error)
        else:
            self._optuna.on_trial_complete(trial_id, None, True)

    def save(self, checkpoint_path: str) -> None:
        """Does nothing: all that counts is in the trials' folders."""

    def restore(self, checkpoint_path: str) -> None:
        """Does nothing."""

    def _tell(self, point: Point, score: float) -> None:
        if score == score:
            self._optuna.add_evaluated_point(self._to_optuna(point.settings), score)

    def _from_optuna(self, found: dict[str, Any]) -> dict[str, Any]:
        """Choices are places in their lists, because Optuna takes no tables and lists."""
        return {
            key: dim.values[found[key]] if dim.values is not None else found[key]
            for key, dim in self._sweep.space.items()
        }

    def _to_optuna(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {
            key: list(dim.values).index(settings[key]) if dim.values is not None else settings[key]
            for key, dim in self._sweep.space.items()
        }


def _distribution(dimension: Dimension) -> Any:
    from optuna import distributions

    if dimension.values is not None:
        return distributions.CategoricalDistribution(tuple(range(len(dimension.values))))
    low, high = dimension.range
    if dimension.integer is not None:
        return distributions.IntDistribution(int(low), int(high))
    return distributions.FloatDistribution(low, high, log=dimension.log_uniform is not None)
