"""Whole iterations of training in RLlib: sampling, advantages, update."""

import time

import pandas as pd

from meta.maml.options import MAMLOptions
from rllib_configs.builders import build_algorithm, iteration_metrics
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig, prepare
from tune_jobs.benchmarks.measuring import ROUNDS, Entry
from tune_jobs.processes.ray_session import ray_session, without_ray_chatter
from tune_jobs.runs.history import MetricRow
from tune_jobs.terminal.running import num_local_cpus

PRESETS = ("deeprm", "deeprm-maml")
QUOTED_S = 80.0  # DeepRM, section 4.3: "each training iteration takes about 80 seconds"
_QUOTED = "quoted from DeepRM's paper, not measured: about 80 s on a server with 24 cores"
_WARM_UPS = 2
_LIMIT_S = 15.0


def measure(seconds: float, *presets: str) -> list[Entry]:
    """Measures iterations with two runners.

    Args:
        seconds: how long at least, at most until `_LIMIT_S`; five iterations or more.
        presets: names of presets, or config files; by default `PRESETS`. The time of an iteration
            of ``deeprm`` is compared with the paper's, that of meta-training with joint training;
            of others, the speed of learning is compared with that of sampling.
    """
    entries = []
    for preset in presets or PRESETS:
        config = without_warm_up(load_config(preset, [f"resources.num_runners={num_runners()}"]))
        with ray_session(config):
            if isinstance(config.training, MAMLOptions) and config.training.inner_steps:
                entries.append(_measure_maml(config, seconds))
            else:
                entries += _measure_plain(config, seconds, quoted=preset == PRESETS[0])
    return entries


def num_runners() -> int:
    """Runners of a measured iteration."""
    return min(2, num_local_cpus())


def without_warm_up(config: ExperimentConfig) -> ExperimentConfig:
    """Meta-training from its first iteration on as it is after its warm-up; others as they are."""
    if not isinstance(config.training, MAMLOptions):
        return config
    training = config.training.model_copy(update={"warm_up": 0.0})
    return prepare(config.model_copy(update={"training": training}))


def _measure_plain(config: ExperimentConfig, seconds: float, quoted: bool) -> list[Entry]:
    """Entries of an algorithm whose iterations sample and then learn."""
    times, rows = _iterate(config, seconds)
    iteration, entries = _iteration(config), []
    if quoted:
        entries.append(
            Entry(
                f"training.{config.name}_iteration",
                f"s for {iteration}",
                times,
                _QUOTED,
                [QUOTED_S],
                higher_is_better=False,
            )
        )
    if all("time/learn_s" in row for row in rows):
        training = config.training
        episodes = training.jobsets * training.episodes_per_jobset
        if isinstance(training, MAMLOptions):
            episodes *= training.tasks * (training.inner_steps + 1)
        learning, sampling = (
            [row["train/decisions_per_episode"] * episodes / row[key] for row in rows]
            for key in ("time/learn_s", "time/sample_s")
        )
        entries.append(
            Entry(
                f"training.{config.name}_learning",
                f"decisions/s, {iteration}",
                learning,
                "sampling in the same iterations",
                sampling,
            )
        )
    return entries


def _measure_maml(config: ExperimentConfig, seconds: float) -> Entry:
    """An iteration of meta-training, against joint training on as many episodes of each task.

    Its parts are what runners sample, adapt in inner steps, and what the outer update takes.
    """
    training = config.training
    episodes = training.episodes_per_jobset * (training.inner_steps + 1)
    alone = training.model_copy(update={"inner_steps": 0, "episodes_per_jobset": episodes})
    _, rows = _iterate(config, seconds)
    _, joint_rows = _iterate(config.model_copy(update={"training": alone}), seconds)
    times, joint = pd.DataFrame(rows).median(), pd.DataFrame(joint_rows).median()
    adapting = times["time/adapt_s"]
    return Entry(
        "training.maml_iteration",
        f"s for {_iteration(config)}",
        [row["time/iteration_s"] for row in rows],
        "joint training on as many episodes, measured after it",
        [row["time/iteration_s"] for row in joint_rows],
        higher_is_better=False,
        parts={
            "sample_s": times["time/sample_s"] - adapting,
            "adapt_s": adapting,
            "learn_s": times["time/learn_s"],
            "reference_sample_s": joint["time/sample_s"],
            "reference_learn_s": joint["time/learn_s"],
        },
    )


def _iteration(config: ExperimentConfig) -> str:
    """What an iteration is, in words."""
    training = config.training
    episodes = f"{training.jobsets} jobsets x {training.episodes_per_jobset} episodes"
    if isinstance(training, MAMLOptions):
        steps = training.inner_steps
        stages = f"{steps + 1} stages x " if steps else ""
        episodes = f"{training.tasks} tasks x {stages}{episodes}"
    return f"{episodes}, {config.resources.num_runners} runners"


def _iterate(config: ExperimentConfig, seconds: float) -> tuple[list[float], list[MetricRow]]:
    """Seconds and metrics of each iteration, warm-up apart; Ray is running."""
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
