"""What more runners are worth: iterations with 1, 2 and 4, and what each costs the driver."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
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

REAL = (1, 2, 4)
"""Numbers of runners that train."""
IDLE = (1, 4, 16, 64)
"""Numbers of actors that answer at once."""
ROUNDS = 12
WARM_UPS = 2
CPU_LIMIT_MS = 0.8
"""Of the driver, for a runner in a round: what may be paid for plain calls of Ray."""


@dataclass(frozen=True)
class _Unit:
    """What one unit of a preset is.

    Attributes:
        weights: that it is played with.
        parameters: that a step is taken at, float32 ``(num_learned,)``.
        steps: one update of each round of an iteration after the first; none where units come with
            gradients.
        played: what it comes to when it is played, and the seconds that this takes.
        learned: its part of an update, likewise.
        share: share of an iteration's units that an update asks for.
    """

    weights: Any
    parameters: Any
    steps: Sequence[Any]
    played: tuple[Any, float]
    learned: tuple[Any, float]
    share: float


def measure(seconds: float, preset: str = "deeprm") -> list[Entry]:
    """Measures whole iterations with 1, 2 and 4 of the same runners, in turns, and idle actors.

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
    config = load_config(preset, [f"resources.num_runners={max(REAL)}"])
    if isinstance(config.training, MAMLOptions):
        training = config.training.model_copy(update={"warm_up": 0.0})
        config = prepare(config.model_copy(update={"training": training}))
    with ray_session(config):
        from rllib_configs.builders import build_algorithm

        with without_ray_chatter():
            algorithm: Any = build_algorithm(config)
        try:
            entries = _iterations(algorithm)
            unit = _unit(algorithm)
        finally:
            algorithm.stop()
        return [*entries, _driver(config, unit)]


def _iterations(algorithm: Any) -> list[Entry]:
    """How many times as fast more runners are as one, by round, beside independent processes."""
    took: dict[int, list[float]] = {number: [] for number in REAL}
    independent = []
    for round_ in range(WARM_UPS + ROUNDS):
        for number in REAL:
            algorithm.runners.maximum = number
            started = perf_counter()
            algorithm.train()
            if round_ >= WARM_UPS:
                took[number].append(perf_counter() - started)
        if round_ >= WARM_UPS:
            independent.append(_independent(algorithm))
    algorithm.runners.maximum = None
    entries = []
    for number in REAL[1:]:
        ratios = [one / many for one, many in zip(took[1], took[number], strict=True)]
        entries.append(
            Entry(
                f"training.runners_{number}_over_1",
                f"times the speed of one runner, iterations of {algorithm.config.experiment.name}",
                Sample(tuple(ratios)),
                "two processes that know nothing of each other, over one",
                Sample(tuple(independent)),
                parts={
                    **_interval("", ratios),
                    **_interval("processes_", independent),
                    "iteration_1_ms": 1e3 * float(np.median(took[1])),
                    f"iteration_{number}_ms": 1e3 * float(np.median(took[number])),
                },
            )
        )
    return entries


def _independent(algorithm: Any) -> float:
    """How many times the work of one process two do at a time, which know nothing of each other."""
    import ray

    from rllib_configs.runners.units import Request, Round

    found, weights = _work(algorithm)
    runners, units = algorithm.runners, dict(enumerate(found))
    given = Round(next(runners.iterations), ray.put(weights), len(units))
    took = {}
    for count in (1, 2):
        started = perf_counter()
        asked = [runners.call(each, Request(units, given)) for each in runners.available()[:count]]
        for answer in ray.get(asked):
            if answer.error:
                raise RuntimeError(answer.error)
        took[count] = perf_counter() - started
    return 2 * took[1] / took[2]


def _work(algorithm: Any) -> tuple[Sequence[Any], Any]:
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


def _unit(algorithm: Any) -> _Unit:
    """Plays the units of an iteration here, one by one, and learns from each."""
    from rllib_configs.algorithms.ppo import steps_of
    from rllib_configs.runners.sums import total
    from rllib_configs.runners.units import Request, Round

    config: ExperimentConfig = algorithm.config.experiment
    units, weights = _work(algorithm)
    number = next(algorithm.runners.iterations)

    def timed(step: Any, parameters: Any) -> tuple[Any, float, Any]:
        answers: list[Any] = []
        for _ in range(2):  # the second time everything is compiled
            answers = []
            for place, unit in enumerate(units):
                given = Round(number, weights, len(units), step, parameters)
                answer = algorithm.runners.run_locally(Request({place: unit}, given))
                if answer.error:
                    raise RuntimeError(answer.error)
                answers.append(answer)
        parts = {node: part for answer in answers for node, part in answer.parts.items()}
        (one,) = answers[0].parts.values()
        seconds = float(np.mean([answer.seconds for answer in answers]))
        return one, seconds, total(parts, len(units))

    *played, whole = timed(None, None)
    parameters, share = None, 1.0
    steps: Sequence[Any] = ()
    if whole.gradient is None and config.training.algorithm != "evolution":
        parameters = algorithm.parameters()
        if isinstance(config.training, MAMLOptions):
            from meta.maml.algorithm import update_plan
            from meta.maml.runner import OuterStep

            plan = update_plan(config, 0)
            steps = [OuterStep(len(indices)) for indices in plan]
            share = float(np.mean([len(indices) for indices in plan])) / len(units)
        else:
            steps = list(steps_of(config.training, whole, 0, 1.0))
    learned: list[Any] = [None, 0.0]
    if steps:
        *learned, _ = timed(steps[0], parameters)
    return _Unit(weights, parameters, steps, tuple(played), tuple(learned), share)


def _driver(config: ExperimentConfig, unit: _Unit) -> Entry:
    """The driver's CPU time for a runner in a round, where runners answer at once."""
    from rllib_configs.runners.dispatch import Timeouts
    from tune_jobs.benchmarks.idle import IdleRunners

    runners = IdleRunners(max(IDLE), unit.played[0], unit.learned[0], Timeouts())
    rounds: dict[int, list[float]] = {number: [] for number in IDLE}
    elapsed: dict[int, list[float]] = {number: [] for number in IDLE}
    for round_ in range(WARM_UPS + ROUNDS):
        for runners.number in IDLE:
            cpu, wall = _idle_round(runners, unit)
            if round_ >= WARM_UPS:
                rounds[runners.number].append(1e3 * cpu / runners.number)
                elapsed[runners.number].append(wall)
    many = max(IDLE)
    parts = {f"at_{number}_ms": float(np.median(values)) for number, values in rounds.items()}
    parts["round_of_1_ms"] = 1e3 * float(np.median(elapsed[1]))
    parts |= {
        "rounds": 1.0 + len(unit.steps),
        "unit_played_ms": 1e3 * unit.played[1],
        "unit_learned_ms": 1e3 * unit.learned[1],
    }
    for number in (32, 256):
        share = efficiency(unit, number, parts[f"at_{many}_ms"] / 1e3, parts["round_of_1_ms"] / 1e3)
        parts[f"efficiency_{number}_percent"] = 100 * share
    return Entry(
        "runners.driver_cpu",
        f"ms of the driver's CPU for a runner in a round, {many} runners of {config.name}",
        Sample(tuple(rounds[many])),
        "what is allowed for it",
        Sample((CPU_LIMIT_MS,)),
        higher_is_better=False,
        parts=parts,
    )


def _idle_round(runners: Any, unit: _Unit) -> tuple[float, float]:
    """CPU and wall seconds of a round: a step where there are steps, else the one of playing."""
    from rllib_configs.runners.dispatch import Iteration
    from rllib_configs.runners.units import FunctionUnit

    units = [FunctionUnit(index, (index, index)) for index in range(2 * runners.number)]
    iteration = Iteration(runners, units, unit.weights)
    if unit.steps:
        iteration.play()
    cpu, started = process_time(), perf_counter()
    if unit.steps:
        iteration.step(unit.steps[0], unit.parameters)
    else:
        iteration.play()
    return process_time() - cpu, perf_counter() - started


def efficiency(unit: _Unit, num_runners: int, cpu_s: float, round_s: float) -> float:
    """Share of an iteration in which runners work, with two units for each.

    Nothing overlaps in this account: the driver calls one runner after the other, and all of them
    wait for it. Updates ask for the same share of units as the preset's, but at least one for each
    runner, so that there are fewer of them where they asked for less.

    Args:
        unit: one of the preset's.
        num_runners: each with two units.
        cpu_s: of the driver, for a runner in a round.
        round_s: that a round with one runner takes, beside the work.
    """
    played, learned = unit.played[1], unit.learned[1]
    share = max(unit.share, 0.5)
    num_steps = len(unit.steps) * unit.share / share
    work = 2 * played + num_steps * 2 * share * learned
    rounds = 1 + num_steps
    return work / (work + rounds * (round_s + num_runners * cpu_s))


def _interval(name: str, values: Sequence[float]) -> dict[str, float]:
    """Mean and 95 % interval over rounds, by Student's t."""
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return {
        f"{name}mean": float(np.mean(values)),
        f"{name}low": float(low),
        f"{name}high": float(high),
    }
