"""How an iteration grows with the number of runners: measured, modelled, and the model checked."""

import pickle
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from cluster_env.core.errors import InputError
from rllib_configs.loading import load_config
from rllib_configs.schema import ExperimentConfig
from tune_jobs.benchmarks.measuring import Entry, Sample
from tune_jobs.benchmarks.scaling_model import PER_MACHINE, Costs, Layout
from tune_jobs.terminal.ray_session import num_local_cpus, ray_session, without_ray_chatter

REAL = (1, 2, 4)
SMALL = (Layout(1), Layout(1, 1), Layout(1, 10), Layout(4, 10))
"""What costs are measured with."""
CHECKED = Layout(10, 10)
PREDICTED = (1, 10, 100, 1000)
ROUNDS = 5
WARM_UPS = 2
"""Iterations that are not measured: lines come in the first one."""
PASSES = 3
"""How often stand-ins are measured in all layouts, in turns, so that no single moment decides."""


@dataclass(frozen=True)
class _Bench:
    """What all measurements use.

    Attributes:
        config: what is trained.
        algorithm: RLlib's, with as many runners as `REAL` asks for.
        weights: state of the module.
        parameters: those of it that are learned, float32 ``(num_learned,)``.
        played: what one unit says when it is played, and the seconds that it takes.
        learned: its part of an update, likewise; the first is None where there are no steps.
        steps: updates of an iteration after it was played.
        row_bytes: size of the rows of the unit, which stay where they are.
    """

    config: ExperimentConfig
    algorithm: Any
    weights: Any
    parameters: Any
    played: tuple[Any, float]
    learned: tuple[Any, float]
    steps: tuple[Any, ...]
    row_bytes: int

    @property
    def unit_s(self) -> float:
        """Seconds that a unit takes in an iteration."""
        return self.played[1] + len(self.steps) * self.learned[1]


def measure(seconds: float, preset: str = "deeprm") -> list[Entry]:
    """Measures real runners, fits the model to a few stand-ins, and checks it with many.

    Args:
        seconds: unused: rounds are counted.
        preset: what is trained, by REINFORCE or PPO.

    Raises:
        InputError: if it is another algorithm's.
    """
    config = load_config(preset, [f"resources.num_runners={max(REAL)}"])
    if config.training.algorithm not in ("reinforce", "ppo"):
        raise InputError(
            f"bench scaling takes presets with the algorithm reinforce or ppo, but {preset} has "
            f"{config.training.algorithm}"
        )
    with ray_session(config):
        bench = _start(config)
        try:
            return [*_real(bench), *_modelled(bench)]
        finally:
            bench.algorithm.stop()


def _start(config: ExperimentConfig) -> _Bench:
    from rllib_configs.algorithms.batched import module_weights
    from rllib_configs.algorithms.ppo import steps_of
    from rllib_configs.builders import build_algorithm
    from rllib_configs.learning.flat import flat_parameters
    from rllib_configs.networks import make_sampler
    from rllib_configs.runners.requests import Request, Round
    from rllib_configs.runners.sampling import UnitSampler, iteration_units
    from rllib_configs.runners.units import UnitEnvRunner

    with without_ray_chatter():
        algorithm = build_algorithm(config)
    weights = module_weights(algorithm)
    runner = UnitEnvRunner(config=algorithm.config, worker_index=0)
    (unit,) = iteration_units(config, 0)[:1]

    def timed(step: Any = None) -> tuple[Any, float]:
        given = Round(0, weights, 1, step, flat_parameters(runner.module))
        answers = [runner.sample(request=Request({0: unit}, given)) for _ in range(4)]
        if answers[0].error:
            raise RuntimeError(answers[0].error)
        return answers[0].parts[0, 0], min(answer.seconds for answer in answers[1:])

    played = timed()
    learned: tuple[Any, float] = (None, 0.0)
    steps: tuple[Any, ...] = ()
    if played[0].gradient is None:
        steps = tuple(steps_of(config.training, played[0], 0, 1.0))
        learned = timed(steps[0])
    rows = UnitSampler(config)(unit, make_sampler(config, weights))
    size = len(pickle.dumps(rows, protocol=5))
    at = flat_parameters(runner.module)
    return _Bench(config, algorithm, weights, at, played, learned, steps, size)


def _real(bench: _Bench) -> list[Entry]:
    """Iterations of the preset with `REAL` numbers of runners, in turns."""
    from rllib_configs.runners.crew import RunnerGroup
    from rllib_configs.runners.sampling import iteration_units
    from tune_jobs.benchmarks.stand_ins import Chosen

    units = iteration_units(bench.config, 0)
    crew = RunnerGroup(bench.algorithm.env_runner_group)
    crews = {count: Chosen(crew, crew.healthy()[:count]) for count in REAL}
    decisions = len(units) * bench.played[0].sums["decisions"]
    lines = bench.algorithm._lines
    rounds = [
        {n: _iterate(bench, crews[n], units, lines) for n in REAL} for _ in range(WARM_UPS + ROUNDS)
    ][WARM_UPS:]
    speeds = {n: Sample(tuple(decisions / each[n] for each in rounds)) for n in REAL}
    return [
        Entry(
            f"scaling.runners_{count}",
            f"decisions/s, {len(units)} units in an iteration",
            speeds[count],
            "1 runner in the same run",
            speeds[1],
        )
        for count in REAL
    ]


@dataclass(frozen=True)
class Spent:
    """What rounds of stand-ins took; CPU times are means of a round.

    Attributes:
        seconds: of each iteration, as a clock on the wall says.
        driver_s: CPU time of the driver.
        stations_s: CPU time of all stations.
        stand_ins_s: CPU time of all stand-ins.
    """

    seconds: Sample
    driver_s: float
    stations_s: float
    stand_ins_s: float

    @staticmethod
    def median(found: Sequence["Spent"]) -> "Spent":
        """All iterations of several measurements, and the median of each CPU time."""
        seconds = Sample(tuple(value for each in found for value in each.seconds.values))
        return Spent(
            seconds,
            statistics.median(each.driver_s for each in found),
            statistics.median(each.stations_s for each in found),
            statistics.median(each.stand_ins_s for each in found),
        )


def costs_of(spent: dict[Layout, Spent], unit_s: float, decisions: float, rounds: int) -> Costs:
    """The costs of a round, from what `SMALL` spent.

    Args:
        spent: by layout.
        unit_s: see `Costs`, as the next two.
        decisions: as well.
        rounds: as well.
    """
    alone, behind, one, four = (spent[layout] for layout in SMALL)
    machine_s = max(0.0, (four.driver_s - one.driver_s) / 3)
    runner_s = max(0.0, (one.stations_s - behind.stations_s) / 9)
    answer_s = max(0.0, (four.stand_ins_s - one.stand_ins_s) / 30)
    ways = [(each.seconds.median - unit_s) / rounds for each in (alone, behind)]
    round_s = max(0.0, ways[0] - machine_s)
    hop_s = max(0.0, ways[1] - ways[0] - runner_s)
    return Costs(unit_s, decisions, rounds, round_s, hop_s, machine_s, runner_s, answer_s)


def seconds_by_cpu(costs: Costs, spent: dict[Layout, Spent], cores: int) -> float:
    """Of an iteration of `CHECKED`, by the model with the CPU time that its own processes took.

    Where this is right and the prediction is not, an answer takes more CPU time among many
    processes of two cores than among few: caches are cold. Runners of a cluster have cores.
    """
    all_, alone = spent[CHECKED], spent[Layout(1)]
    more_s = sum(
        getattr(all_, name) - getattr(alone, name)
        for name in ("driver_s", "stations_s", "stand_ins_s")
    )
    return costs.unit_s + costs.rounds * (costs.round_s + costs.hop_s + more_s / cores)


def _modelled(bench: _Bench) -> list[Entry]:
    from rllib_configs.runners.lines import Lines
    from tune_jobs.benchmarks.stand_ins import StandIns, StandInStations

    (played, play_s), (learned, step_s) = bench.played, bench.learned
    stand_ins = StandIns(CHECKED.total, played, learned, play_s, step_s)
    stations = StandInStations(stand_ins, CHECKED.machines)
    lines = Lines()
    try:
        passes = [
            {each: _spent(bench, stand_ins, stations, lines, each) for each in (*SMALL, CHECKED)}
            for _ in range(1 + PASSES)
        ][1:]  # in the first one processes read code, and open lines
    finally:
        lines.close()
        stations.stop()
        stand_ins.stop()
    spent = {each: Spent.median([one[each] for one in passes]) for each in (*SMALL, CHECKED)}
    costs = costs_of(spent, bench.unit_s, played.sums["decisions"], 1 + len(bench.steps))
    return [_traffic(bench), _check(costs, spent), *_predictions(costs)]


def _spent(bench: _Bench, stand_ins: Any, stations: Any, lines: Any, layout: Layout) -> Spent:
    """Has iterations done by stand-ins, in a layout."""
    from rllib_configs.runners.sampling import SampleUnit
    from tune_jobs.benchmarks.stand_ins import Chosen

    units = [SampleUnit(index, 0, (0,)) for index in range(layout.total)]
    alone = Chosen(stand_ins, stand_ins.healthy()[: layout.total])
    crew = stations.crew(layout) if layout.runners else alone
    for _ in range(WARM_UPS):
        _iterate(bench, crew, units, lines)
    before = process_time(), stations.cpu_s(), stand_ins.cpu_s()
    seconds = Sample(tuple(_iterate(bench, crew, units, lines) for _ in range(ROUNDS)))
    after = process_time(), stations.cpu_s(), stand_ins.cpu_s()
    rounds = ROUNDS * (1 + len(bench.steps))
    return Spent(seconds, *((b - a) / rounds for a, b in zip(before, after, strict=True)))


def _traffic(bench: _Bench) -> Entry:
    """Bytes that a runner with one unit sends in an iteration, beside the rows that stay there."""
    parts = [bench.played[0], *[bench.learned[0]] * len(bench.steps)]
    sent = sum(len(pickle.dumps(part, protocol=5)) for part in parts)
    weights = len(pickle.dumps(bench.weights, protocol=5))
    return Entry(
        "scaling.bytes_from_a_runner",
        "bytes of an iteration with one unit",
        Sample((float(sent),)),
        "the rows of the unit, which stay where they are",
        Sample((float(bench.row_bytes),)),
        higher_is_better=False,
        parts={"to_a_machine_bytes": weights * (1 + len(bench.steps))},
    )


def _check(costs: Costs, spent: dict[Layout, Spent]) -> Entry:
    took, cores = spent[CHECKED].seconds, num_local_cpus()
    predicted = costs.crowded_seconds(CHECKED, cores)
    by_own_cpu = seconds_by_cpu(costs, spent, cores)
    return Entry(
        f"scaling.stand_ins_{CHECKED.total}",
        f"s for an iteration, a unit each, {CHECKED.machines} stations on this machine",
        took,
        f"what the model predicts from at most {max(each.total for each in SMALL)} stand-ins",
        Sample((predicted,)),
        higher_is_better=False,
        parts={
            "error_percent": 100 * (predicted / took.median - 1),
            "error_percent_by_own_cpu": 100 * (by_own_cpu / took.median - 1),
            "driver_calls": costs.rounds * CHECKED.machines,
            "driver_ms_for_a_machine": 1e3 * costs.machine_s,
            "station_ms_for_a_runner": 1e3 * costs.runner_s,
            "stand_in_ms_for_an_answer": 1e3 * costs.answer_s,
        },
    )


def _predictions(costs: Costs) -> list[Entry]:
    layouts = {count: Layout.of(count) for count in PREDICTED}
    return [
        Entry(
            f"scaling.predicted_{count}",
            f"decisions/s by the model, a unit for each runner, {PER_MACHINE} on a machine",
            Sample((costs.decisions_per_s(count),)),
            "1 runner by the model",
            Sample((costs.decisions_per_s(1),)),
            parts={
                "units_ms": 1e3 * costs.unit_s,
                "rounds_ms": 1e3
                * costs.rounds
                * (costs.round_s + (costs.hop_s if layout.runners else 0.0)),
                "machines_ms": 1e3 * costs.rounds * layout.machines * costs.machine_s,
                "stations_ms": 1e3 * costs.rounds * layout.runners * costs.runner_s,
            },
        )
        for count, layout in layouts.items()
    ]


def _iterate(bench: _Bench, crew: Any, units: Sequence[Any], lines: Any) -> float:
    """Seconds of an iteration as the algorithms do it, with any crew and lines to it."""
    from rllib_configs.runners.iteration import Iteration
    from rllib_configs.runners.patience import Patience

    started = perf_counter()
    iteration = Iteration(crew, units, bench.weights, Patience(), lines)
    gradient = iteration.play().part.gradient
    if gradient is not None:
        bench.algorithm.learn(gradient)
    parameters = bench.parameters
    for step in bench.steps:
        gradient = iteration.step(step, parameters).part.gradient
        parameters = bench.algorithm.learn(gradient).parameters
    return perf_counter() - started
