"""What a second runner is worth: iterations with one and two, and what the machine would allow."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from scipy import stats

from cluster_env.core.errors import InputError
from meta.maml.options import MAMLOptions
from rllib_configs.loading import load_config
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig
from tune_jobs.benchmarks.measuring import Entry, Sample
from tune_jobs.terminal.ray_session import num_local_cpus, ray_session, without_ray_chatter

ROUNDS = 12
_WARM_UPS = 2


class FewerRunners:
    """In the place of an algorithm's `Stations`: it has some of the runners do the work.

    Args:
        group: all of them.
    """

    def __init__(self, group: Any) -> None:
        self._group = group
        self.count = group.size

    def crew(self) -> Any:
        """See `Stations`."""
        from tune_jobs.benchmarks.stand_ins import Chosen

        return Chosen(self._group, self._group.healthy()[: self.count])

    def forget(self, runners: Sequence[int]) -> None:
        """See `Stations`."""

    def stop(self) -> None:
        """See `Stations`."""


def measure(seconds: float, preset: str = "deeprm") -> list[Entry]:
    """Measures whole iterations with one and with two of the same runners, in turns.

    Beside them, in the same rounds, the two runners play the same units without each other, one
    alone and then both at a time: as much as two processes of this machine can do.

    Args:
        seconds: unused: rounds are counted.
        preset: what is trained; meta-training without its warm-up.

    Raises:
        InputError: if there are fewer than two CPUs.
    """
    if num_local_cpus() < 2:
        raise InputError("bench runners compares two runners with one, which takes two CPUs")
    config = load_config(preset, ["resources.num_runners=2"])
    if isinstance(config.training, MAMLOptions):
        training = config.training.model_copy(update={"warm_up": 0.0})
        config = prepare(config.model_copy(update={"training": training}))
    with ray_session(config):
        return [_entry(config, *_measured(config))]


def _measured(config: ExperimentConfig) -> tuple[list[float], list[float]]:
    """How many times as fast two are as one, in each round: runners, and processes."""
    from rllib_configs.builders import build_algorithm
    from rllib_configs.runners.crew import RunnerGroup

    with without_ray_chatter():
        algorithm: Any = build_algorithm(config)
    try:
        group = RunnerGroup(algorithm.env_runner_group)
        chosen = algorithm._stations = FewerRunners(group)
        runners, processes = [], []
        for round_ in range(_WARM_UPS + ROUNDS):
            took = {}
            for chosen.count in (1, 2):
                started = perf_counter()
                algorithm.train()
                took[chosen.count] = perf_counter() - started
            independent = _independent(algorithm, group)
            if round_ >= _WARM_UPS:
                runners.append(took[1] / took[2])
                processes.append(independent)
        return runners, processes
    finally:
        algorithm.stop()


def _independent(algorithm: Any, group: Any) -> float:
    """How many times the work of one process two do at a time, which know nothing of each other."""
    import ray

    from rllib_configs.runners.requests import Request, Round

    found, weights = _work(algorithm)
    units = dict(enumerate(found))
    given = Round(-1, ray.put(weights), len(units))
    took = {}
    for count in (1, 2):
        started = perf_counter()
        asked = [group.ask(each, Request(units, given)) for each in group.healthy()[:count]]
        for answer in ray.get(asked):
            if answer.error:
                raise RuntimeError(answer.error)
        took[count] = perf_counter() - started
    return 2 * took[1] / took[2]


def _work(algorithm: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Units of an iteration, and the weights that they are played with."""
    from rllib_configs.algorithms.batched import module_weights
    from rllib_configs.algorithms.evolution import Evolution

    config: ExperimentConfig = algorithm.config.experiment
    if isinstance(algorithm, Evolution):
        return algorithm.work()
    if isinstance(config.training, MAMLOptions):
        from meta.maml.runner import iteration_tasks

        return iteration_tasks(config, 0), module_weights(algorithm)
    from rllib_configs.runners.sampling import iteration_units

    return iteration_units(config, 0), module_weights(algorithm)


def _entry(config: ExperimentConfig, runners: list[float], processes: list[float]) -> Entry:
    return Entry(
        "training.runners_2_over_1",
        f"times the speed of one runner, iterations of {config.name}",
        Sample(tuple(runners)),
        "two processes that know nothing of each other, over one",
        Sample(tuple(processes)),
        parts={
            **_interval("", runners),
            **_interval("processes_", processes),
        },
    )


def _interval(name: str, values: list[float]) -> dict[str, float]:
    """Mean and 95 % interval over rounds, by Student's t."""
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return {
        f"{name}mean": float(np.mean(values)),
        f"{name}low": float(low),
        f"{name}high": float(high),
    }
