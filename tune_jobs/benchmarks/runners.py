"""What more runners are worth: iterations with 1, 2 and 4."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import ray
from scipy import stats

from cluster_env.core.errors import InputError
from meta.maml.options import MAMLOptions
from meta.maml.runner import iteration_tasks
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.algorithms.evolution import Evolution
from rllib_configs.builders import build_algorithm
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.runners.units import Request, Round
from tune_jobs.benchmarks.measuring import Entry
from tune_jobs.benchmarks.training import without_warm_up
from tune_jobs.processes.ray_session import ray_session, without_ray_chatter
from tune_jobs.terminal.running import num_local_cpus

PRESET = "deeprm-maml"
NUMBERS = (1, 2, 4)
ROUNDS = 12
WARM_UPS = 2


def measure(seconds: float, preset: str = PRESET) -> list[Entry]:
    """Measures whole iterations with 1, 2 and 4 of the same runners, in turns.

    Beside them, in the same rounds, two runners play the same units without each other, one alone
    and then both at a time: as much as two processes of this machine can do.

    Args:
        seconds: unused: rounds are counted.
        preset: what is trained; meta-training without its warm-up.

    Raises:
        InputError: if there are fewer than two CPUs.
    """
    if num_local_cpus() < 2:
        raise InputError("bench runners compares two runners with one, which takes two CPUs")
    config = without_warm_up(load_config(preset, [f"resources.num_runners={max(NUMBERS)}"]))
    took: dict[int, list[float]] = {number: [] for number in NUMBERS}
    independent = []
    with ray_session(config):
        with without_ray_chatter():
            algorithm: Any = build_algorithm(config)
        try:
            for round_ in range(WARM_UPS + ROUNDS):
                for number in NUMBERS:
                    algorithm.runners.maximum = number
                    started = perf_counter()
                    algorithm.train()
                    if round_ >= WARM_UPS:
                        took[number].append(perf_counter() - started)
                if round_ >= WARM_UPS:
                    independent.append(_independent(algorithm))
        finally:
            algorithm.stop()
    return [_entry(config.name, number, took, independent) for number in NUMBERS[1:]]


def _entry(
    name: str, number: int, took: dict[int, list[float]], independent: Sequence[float]
) -> Entry:
    ratios = [one / many for one, many in zip(took[1], took[number], strict=True)]
    parts: dict[str, float] = {}
    for whose, values in (("", ratios), ("processes_", independent)):
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        parts |= {
            f"{whose}mean": float(np.mean(values)),
            f"{whose}low": float(low),
            f"{whose}high": float(high),
        }
    for some in (1, number):
        parts[f"iteration_{some}_ms"] = 1e3 * float(np.median(took[some]))
    return Entry(
        f"training.runners_{number}_over_1",
        f"times the speed of one runner, iterations of {name}",
        ratios,
        "two processes that know nothing of each other, over one",
        independent,
        parts=parts,
    )


def _independent(algorithm: Any) -> float:
    """How many times the work of one process two do at a time, which know nothing of each other."""
    config: ExperimentConfig = algorithm.config.experiment
    work: Sequence[Any]
    if isinstance(algorithm, Evolution):
        work, weights = algorithm.work()
    else:
        of_meta = isinstance(config.training, MAMLOptions)
        work = iteration_tasks(config, 0) if of_meta else iteration_units(config, 0)
        weights = module_weights(algorithm)
    runners, units = algorithm.runners, dict(enumerate(work))
    round_ = Round(next(runners.iterations), ray.put(weights), len(units))
    took = {}
    for count in (1, 2):
        started = perf_counter()
        calls = [runners.call(each, Request(units, round_)) for each in runners.available()[:count]]
        for answer in ray.get(calls):
            if answer.error:
                raise RuntimeError(answer.error)
        took[count] = perf_counter() - started
    return 2 * took[1] / took[2]
