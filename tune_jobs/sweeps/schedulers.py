"""Who is stopped early, and who takes over from whom: Ray Tune's schedulers, made repeatable."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from ray import tune
from ray.tune.schedulers import (
    ASHAScheduler,
    PopulationBasedTraining,
    TrialScheduler,
)

from cluster_env.core.seeding import Purpose, generator
from rllib_configs.dimensions import Dimension
from tune_jobs.runs.history import MetricRow
from tune_jobs.sweeps.searched import SearchedSweep, Stream

_BY_SCORE = {"metric": "score", "time_attr": "iteration"}


class Halving(ASHAScheduler):
    """ASHA that decides where the metric is new, and knows trials by their index.

    Args:
        sweep: what it is.
        num_iterations: of a trial that is not stopped.
    """

    def __init__(self, sweep: SearchedSweep, num_iterations: int) -> None:
        super().__init__(
            **_BY_SCORE,
            mode=sweep.mode,
            max_t=num_iterations,
            grace_period=sweep.asha.grace,
            reduction_factor=sweep.asha.reduction,
        )

    def replay(self, index: int, rows: Sequence[MetricRow], metric: str, average: int) -> None:
        """Tells it what a trial did before the sweep was interrupted."""
        trial = SimpleNamespace(config={"trial": {"index": index}})
        self.on_trial_add(None, trial)
        values: list[float] = []
        for row in rows:
            if metric in row:
                values.append(row[metric])
                newest = values[-average:]
                result = {"iteration": row["iteration"], "score": sum(newest) / len(newest)}
                super().on_trial_result(None, _named(trial), result)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """See ASHA."""
        super().on_trial_add(tune_controller, _named(trial))

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """See ASHA."""
        if not result["scored"]:
            return TrialScheduler.CONTINUE
        return str(super().on_trial_result(tune_controller, _named(trial), result))

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """See ASHA."""
        super().on_trial_complete(tune_controller, _named(trial), result)

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """See ASHA."""
        self._trial_info.pop(_named(trial).trial_id, None)


class Evolution(PopulationBasedTraining):
    """Population based training that comes to the same whatever runs at the same time.

    All trials wait for each other at the end of an interval; what is drawn depends on the sweep's
    seed, the trial and the iteration alone.

    Args:
        sweep: what it is.
        num_slots: trials that run at a time.
    """

    def __init__(self, sweep: SearchedSweep, num_slots: int) -> None:
        super().__init__(
            **_BY_SCORE,
            mode=sweep.mode,
            perturbation_interval=sweep.pbt.interval,
            hyperparam_mutations={
                "trial": {
                    "settings": {key: _domain(dim) for key, dim in sweep.space.items()},
                }
            },
            quantile_fraction=sweep.pbt.quantile,
            resample_probability=sweep.pbt.resample,
            custom_explore_fn=self._keep_in_range,
            log_config=False,
            synch=True,
        )
        self._sweep = sweep
        self._num_slots = num_slots

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """See Ray; one that was lost, and is tried again, keeps its place in the interval."""
        if trial not in self._trial_state:
            super().on_trial_add(tune_controller, trial)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """See Ray; only where the metric is new."""
        if not result["scored"]:
            return TrialScheduler.CONTINUE
        return str(super().on_trial_result(tune_controller, trial, result))

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """See Ray; no more at a time than there are slots."""
        running = [each for each in tune_controller.get_trials() if each.status == "RUNNING"]
        if len(running) >= self._num_slots:
            return None
        return super().choose_trial_to_run(tune_controller)

    def _checkpoint_or_exploit(self, trial: Any, *args: Any) -> None:
        with _drawing_from(self._sweep.seed, _index(trial), self._trial_state[trial]):
            super()._checkpoint_or_exploit(trial, *args)

    def _get_new_config(self, trial: Any, trial_to_clone: Any) -> tuple[dict, dict]:
        """Settings from the better trial, changed; index, and so the seed, stay."""
        config, operations = super()._get_new_config(trial, trial_to_clone)
        config["trial"]["index"] = _index(trial)
        return config, operations

    def _keep_in_range(self, config: dict[str, Any]) -> dict[str, Any]:
        settings = config["trial"]["settings"]
        for key, dimension in self._sweep.space.items():
            if dimension.values is None:
                settings[key] = dimension.clip(settings[key])
        return config


def _index(trial: Any) -> int:
    return int(trial.config["trial"]["index"])


def _named(trial: Any) -> SimpleNamespace:
    return SimpleNamespace(trial_id=f"trial-{_index(trial)}")


def _domain(dimension: Dimension) -> Any:
    if dimension.values is not None:
        return list(dimension.values)
    low, high = dimension.range
    if dimension.integer is not None:
        return tune.randint(int(low), int(high) + 1)
    if dimension.log_uniform is not None:
        return tune.loguniform(low, high)
    return tune.uniform(low, high)


@contextmanager
def _drawing_from(seed: int, index: int, state: Any) -> Iterator[None]:
    """Seeds the global generators that Ray draws from, and puts them back."""
    rng = generator(seed, Purpose.SWEEP, Stream.EVOLUTION, index, int(state.last_train_time))
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(int(rng.integers(1 << 32)))
    np.random.seed(int(rng.integers(1 << 32)))  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
