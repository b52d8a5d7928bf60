"""Whole iterations of training in RLlib: sampling, advantages, update."""

import time
from collections.abc import Callable

from meta.maml.options import MAMLOptions
from rllib_configs.loading import load_config
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig
from tune_jobs.benchmarks.measuring import ROUNDS, Entry, Sample
from tune_jobs.runs.history import MetricRow
from tune_jobs.terminal.ray_session import num_local_cpus, ray_session, without_ray_chatter

PRESET = "deeprm"
QUOTED_S = 80.0  # DeepRM, section 4.3: "each training iteration takes about 80 seconds"
_QUOTED = "quoted from DeepRM's paper, not measured: about 80 s on a server with 24 cores"
_SAME = "sampling in the same iterations"
_JOINT = "joint training on as many episodes, measured after it"
_WARM_UPS = 2
_LIMIT_S = 15.0


def measure(seconds: float, preset: str = PRESET) -> list[Entry]:
    """Measures iterations of a preset, with two runners.

    Args:
        seconds: how long at least, at most until `_LIMIT_S`; five iterations or more.
        preset: name of a preset, or a config file. The time of an iteration of the preset
            ``deeprm`` is compared with the paper's; of any preset whose algorithm samples and
            learns in turns, the speed of the one is compared with that of the other; of
            meta-training with inner steps, all parts with those of joint training.
    """
    runners = min(2, num_local_cpus())
    config = load_config(preset, [f"resources.num_runners={runners}"])
    if isinstance(config.training, MAMLOptions):
        training = config.training.model_copy(update={"warm_up": 0.0})
        config = prepare(config.model_copy(update={"training": training}))
    with ray_session(config):
        if isinstance(config.training, MAMLOptions) and config.training.inner_steps:
            return _measure_maml(config, seconds)
        return _measure_plain(config, seconds, compared=preset == PRESET)


def _measure_plain(config: ExperimentConfig, seconds: float, compared: bool) -> list[Entry]:
    """Entries of an algorithm whose iterations sample and then learn.

    Args:
        config: what to train.
        seconds: see `measure`.
        compared: whether the time of an iteration is compared with the paper's.
    """
    times, rows = _iterate(config, seconds)
    iteration = _iteration(config)
    entries = []
    if compared:
        entries.append(
            Entry(
                "training.deeprm_iteration",
                f"s for {iteration}",
                Sample(tuple(times)),
                _QUOTED,
                Sample((QUOTED_S,)),
                higher_is_better=False,
            )
        )
    if all("time/learn_s" in row for row in rows):
        entries.append(
            Entry(
                f"training.{config.name}_learning",
                f"decisions/s, {iteration}",
                _sample(rows, lambda row: _decisions(config, row) / row["time/learn_s"]),
                _SAME,
                _sample(rows, lambda row: _decisions(config, row) / row["time/sample_s"]),
            )
        )
    return entries


def _measure_maml(config: ExperimentConfig, seconds: float) -> list[Entry]:
    """Entries of meta-training: an iteration, and what its parts do and take of it.

    Joint training has the same tasks and as many episodes of each, all in one stage. Sampling is
    what runners do but inner steps; these count the decisions of the stages that they learn from,
    which have as many episodes as the one that comes after.
    """
    steps = config.training.inner_steps
    episodes = config.training.episodes_per_jobset * (steps + 1)
    joint = config.model_copy(
        update={
            "training": config.training.model_copy(
                update={"inner_steps": 0, "episodes_per_jobset": episodes}
            ),
        }
    )
    _, rows = _iterate(config, seconds)
    _, joint_rows = _iterate(joint, seconds)
    iteration = _iteration(config)

    def spent(row: MetricRow) -> float:
        return row["time/iteration_s"]

    def sampling(row: MetricRow) -> float:
        return row["time/sample_s"] - row["time/adapt_s"]

    def adapting(row: MetricRow) -> float:
        return row["time/adapt_s"]

    def learning(row: MetricRow) -> float:
        return row["time/learn_s"]

    def entry(
        part: str,
        clock: Callable[[MetricRow], float],
        reference: str,
        reference_measured: Sample,
        counted: float = 1.0,
    ) -> Entry:
        return Entry(
            f"training.maml_{part}",
            f"decisions/s, {iteration}",
            _sample(rows, lambda row: counted * _decisions(config, row) / clock(row)),
            reference,
            reference_measured,
            share=_sample(rows, lambda row: clock(row) / spent(row)).median,
        )

    def of_joint(clock: Callable[[MetricRow], float]) -> Sample:
        return _sample(joint_rows, lambda row: _decisions(joint, row) / clock(row))

    sampled = _sample(rows, lambda row: _decisions(config, row) / sampling(row))
    return [
        Entry(
            "training.maml_iteration",
            f"s for {iteration}",
            _sample(rows, spent),
            _JOINT,
            _sample(joint_rows, spent),
            higher_is_better=False,
        ),
        entry("sampling", sampling, f"that of {_JOINT}", of_joint(sampling)),
        entry("adaptation", adapting, _SAME, sampled, steps / (steps + 1)),
        entry("update", learning, f"that of {_JOINT}", of_joint(learning)),
    ]


def _iteration(config: ExperimentConfig) -> str:
    """What an iteration is, in words."""
    training = config.training
    episodes = f"{training.jobsets} jobsets x {training.episodes_per_jobset} episodes"
    if isinstance(training, MAMLOptions):
        steps = training.inner_steps
        stages = f"{steps + 1} stages x " if steps else ""
        episodes = f"{training.tasks} tasks x {stages}{episodes}"
    return f"{episodes}, {config.resources.num_runners} runners"


def _decisions(config: ExperimentConfig, row: MetricRow) -> float:
    """Decisions that an iteration sampled."""
    training = config.training
    episodes = training.jobsets * training.episodes_per_jobset
    if isinstance(training, MAMLOptions):
        episodes *= training.tasks * (training.inner_steps + 1)
    return row["train/decisions_per_episode"] * episodes


def _sample(rows: list[MetricRow], value: Callable[[MetricRow], float]) -> Sample:
    return Sample(tuple(value(row) for row in rows))


def measured_iterations(
    config: ExperimentConfig, seconds: float
) -> tuple[list[float], list[MetricRow]]:
    """Seconds and metrics of iterations, on a Ray of their own; see `measure`."""
    with ray_session(config):
        return _iterate(config, seconds)


def _iterate(config: ExperimentConfig, seconds: float) -> tuple[list[float], list[MetricRow]]:
    """Seconds and metrics of each iteration, warm-up apart; Ray is running."""
    from rllib_configs.builders import build_algorithm, iteration_metrics

    with without_ray_chatter():
        algorithm = build_algorithm(config)
    try:
        for _ in range(_WARM_UPS):
            algorithm.train()
        times: list[float] = []
        rows: list[MetricRow] = []
        while len(times) < ROUNDS or sum(times) < min(seconds, _LIMIT_S):
            began = time.perf_counter()
            result = algorithm.train()
            times.append(time.perf_counter() - began)
            rows.append(iteration_metrics(result))
    finally:
        algorithm.stop()
    return times, rows
