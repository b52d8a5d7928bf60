"""How an iteration grows with the number of runners: measured, modelled, and the model checked."""

import pickle
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

from cluster_env.core.errors import InputError
from rllib_configs.loading import load_config
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.schema import ExperimentConfig
from tune_jobs.benchmarks.measuring import Entry, Sample
from tune_jobs.benchmarks.scaling_model import Costs, IterationParts, Parts, fit
from tune_jobs.terminal.ray_session import ray_session, without_ray_chatter

REAL = (1, 2, 4)
FITTED = ((2, 0.1), (2, 1.0), (4, 1.0), (8, 0.1), (8, 1.0), (20, 0.1), (20, 1.0))
"""Runners, and the share of a unit's rows that they return, that the model is fitted to."""
CHECKED = (30, 50, 100)
PREDICTED = (1, 4, 10, 100, 1000)
ROUNDS = 5
_LARGEST_UNITS = 4  # of the updates that the cost of learning is taken from


@dataclass(frozen=True)
class _Bench:
    """What all measurements use.

    Attributes:
        config: what is trained.
        algorithm: RLlib's, with as many runners as `REAL` asks for.
        answer: `Rollouts` of one unit.
        unit_s: seconds that it took.
        weights: state of the module.
    """

    config: ExperimentConfig
    algorithm: Any
    answer: Any
    unit_s: float
    weights: Any


def measure(seconds: float, preset: str = "deeprm") -> list[Entry]:
    """Measures real runners, fits the model to a few stand-ins, and checks it with many.

    Args:
        seconds: unused: rounds are counted.
        preset: what is trained; its algorithm samples units and learns from their rows.

    Raises:
        InputError: if it does not.
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
            return _measure(bench)
        finally:
            bench.algorithm.stop()


def _start(config: ExperimentConfig) -> _Bench:
    from rllib_configs.algorithms.batched import iteration_units, module_weights
    from rllib_configs.builders import build_algorithm
    from rllib_configs.runners.batched import BatchedEnvRunner, SampleRequest

    with without_ray_chatter():
        algorithm = build_algorithm(config)
    weights = module_weights(algorithm)
    runner = BatchedEnvRunner(config=algorithm.config, worker_index=0)
    (unit,) = iteration_units(config, 0)[:1]
    results = [runner.sample(request=SampleRequest((unit,), weights, 0)) for _ in range(3)]
    if results[0].error:
        raise RuntimeError(results[0].error)
    return _Bench(
        config,
        algorithm,
        answer=results[0].answers[unit.index],
        unit_s=statistics.median(result.seconds for result in results[1:]),
        weights=weights,
    )


def _measure(bench: _Bench) -> list[Entry]:
    from tune_jobs.benchmarks.stand_ins import StandIns

    entries = [_traffic(bench), *_real(bench)]
    stand_ins = StandIns(max(CHECKED), bench.answer)
    try:
        costs = _fit(bench, stand_ins)
        checks = _check(bench, stand_ins, costs)
    finally:
        stand_ins.stop()
    costs = costs.with_learning(*_learning(bench))
    return [*entries, *checks, *_predictions(costs)]


def _traffic(bench: _Bench) -> Entry:
    """Bytes that an answer has for each decision, beside those of DeepRM's image."""
    rows = bench.answer.num_rows
    size = len(pickle.dumps(bench.answer, protocol=5))
    weights = len(pickle.dumps(bench.weights, protocol=5))
    task = bench.config.task.build()
    image: Any = task.kind.observations.get("image")(task.world)
    height, width = image.space.shape
    images = size + rows * (height * width - bench.answer.states.shape[1])
    return Entry(
        "scaling.bytes_per_decision",
        "bytes",
        Sample((size / rows,)),
        "the same with an image, a byte a pixel, in the place of the state",
        Sample((images / rows,)),
        higher_is_better=False,
        parts={
            "to_each_runner_bytes": weights,
            "from_a_runner_for_each_unit_bytes": size,
            "decisions_of_a_unit": rows,
        },
    )


def _real(bench: _Bench) -> list[Entry]:
    """Iterations of the preset with `REAL` numbers of runners."""
    from rllib_configs.algorithms.batched import iteration_units
    from tune_jobs.benchmarks.stand_ins import Part

    units = iteration_units(bench.config, 0)
    speeds: dict[int, Sample] = {}
    parts: dict[int, Parts] = {}
    for count in REAL:
        group = Part(bench.algorithm.env_runner_group, count)
        rounds = [_iterate(bench, group, units, learn=True) for _ in range(ROUNDS + 1)][1:]
        speeds[count] = Sample(tuple(each.rows / each.parts.total for each in rounds))
        parts[count] = _median([each.parts for each in rounds])
    return [
        Entry(
            f"scaling.runners_{count}",
            f"decisions/s, {len(units)} units in an iteration",
            speeds[count],
            "1 runner in the same run",
            speeds[1],
            parts=parts[count].named(),
        )
        for count in REAL
    ]


def _fit(bench: _Bench, stand_ins: Any) -> Costs:
    measured = []
    for count, share in FITTED:
        stand_ins.use(count, rows=int(share * bench.answer.num_rows))
        rounds = [_iterate(bench, stand_ins, _units(count)) for _ in range(ROUNDS + 1)][1:]
        parts = _median([each.parts for each in rounds])
        measured.append(IterationParts(count, rounds[0].rows, parts))
    return fit(measured, bench.unit_s, bench.answer.num_rows)


def _check(bench: _Bench, stand_ins: Any, costs: Costs) -> list[Entry]:
    """Iterations with many stand-ins, beside what the model says of them."""
    entries = []
    for count in CHECKED:
        stand_ins.use(count, unit_s=bench.unit_s)
        rounds = [_iterate(bench, stand_ins, _units(count)) for _ in range(ROUNDS + 1)][1:]
        predicted = costs.predict(count)
        took = Sample(tuple(each.parts.total for each in rounds))
        entries.append(
            Entry(
                f"scaling.stand_ins_{count}",
                "s for broadcast, sample and gather, a unit each",
                took,
                f"what the model predicts, fitted to at most {FITTED[-1][0]} stand-ins",
                Sample((predicted.total,)),
                higher_is_better=False,
                parts={
                    "error_percent": 100 * (predicted.total / took.median - 1),
                    **_median([each.parts for each in rounds]).named(),
                },
            )
        )
    return entries


def _learning(bench: _Bench) -> tuple[list[float], list[int]]:
    """Seconds and rows of updates of 1 to `_LARGEST_UNITS` units."""
    seconds, rows = [], []
    for count in (1, 2, _LARGEST_UNITS):
        rollouts = Rollouts.join([bench.answer] * count)
        times = [_time(partial(_learn, bench, rollouts)) for _ in range(ROUNDS)]
        seconds.append(min(times))  # the same work each time; what takes longer was disturbed
        rows.append(rollouts.num_rows)
    return seconds, rows


def _predictions(costs: Costs) -> list[Entry]:
    """What the model says of more runners, a unit each, and of more learners."""
    alone = costs.decisions_per_s(1)
    entries = [
        Entry(
            f"scaling.predicted_{count}",
            "decisions/s by the model, a unit for each runner and one learner",
            Sample((costs.decisions_per_s(count),)),
            "1 runner by the model",
            Sample((alone,)),
            parts=costs.predict(count).named(),
        )
        for count in PREDICTED
    ]
    ceiling = Entry(
        "scaling.ceiling",
        "decisions/s that no number of runners gets beyond, with one learner",
        Sample((costs.ceiling(),)),
        "1 runner by the model",
        Sample((alone,)),
        parts={
            "runners_for_80_percent": costs.runners_for(0.8),
            "with_8_learners": replace(costs, learners=8).ceiling(),
            "gather_us": 1e6 * costs.gather_s,
            "call_us": 1e6 * costs.call_s,
            "row_us": 1e6 * costs.row_s,
            "learn_row_us": 1e6 * costs.learn_row_s,
            "fetch_us": 1e6 * costs.fetch_s,
        },
    )
    return [*entries, ceiling]


def _iterate(
    bench: _Bench, group: Any, units: Sequence[Any], *, learn: bool = False
) -> IterationParts:
    """An iteration as the algorithms do it, with any group of runners."""
    from rllib_configs.algorithms.batched import module_weights
    from rllib_configs.runners.gathering import gather

    started = perf_counter()
    weights = module_weights(bench.algorithm)
    weights_s = perf_counter() - started
    gathered = gather(group, units, weights, 0)
    joining = perf_counter()
    rollouts = Rollouts.join(gathered.answers)
    join_s = perf_counter() - joining
    learn_s = _time(partial(_learn, bench, rollouts)) if learn else 0.0
    fetch_s = gathered.broadcast_s
    parts = Parts(
        broadcast=weights_s + gathered.broadcast_s,
        sample=max(0.0, joining - started - weights_s - gathered.gather_s - fetch_s),
        gather=gathered.gather_s + join_s,
        learn=learn_s,
    )
    return IterationParts(group.num_remote_env_runners(), rollouts.num_rows, parts)


def _learn(bench: _Bench, rollouts: Any) -> None:
    for columns, minibatch_size in bench.algorithm.batches(rollouts):
        bench.algorithm._update(columns, minibatch_size)


def _time(work: Callable[[], None]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def _units(count: int) -> list[Any]:
    """Units that stand-ins can be asked for."""
    from rllib_configs.runners.batched import SampleUnit

    return [SampleUnit(index, 0, (0,)) for index in range(count)]


def _median(all_parts: Sequence[Parts]) -> Parts:
    return Parts(
        *(
            statistics.median(getattr(parts, name) for parts in all_parts)
            for name in Parts.__dataclass_fields__
        )
    )
