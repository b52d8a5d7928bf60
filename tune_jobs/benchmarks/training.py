"""Whole iterations of training in RLlib: sampling, advantages, update."""

import time

from rllib_configs.loading import load_config
from rllib_configs.schema import ExperimentConfig
from tune_jobs.benchmarks.measuring import ROUNDS, Entry, Sample
from tune_jobs.ray_session import num_local_cpus, ray_session, without_ray_chatter

PRESET = "deeprm"
QUOTED_S = 80.0  # DeepRM, section 4.3: "each training iteration takes about 80 seconds"
_QUOTED = "quoted from DeepRM's paper, not measured: about 80 s on a server with 24 cores"
_WARM_UPS = 2
_LIMIT_S = 15.0


def measure(seconds: float, preset: str = PRESET) -> list[Entry]:
    """Measures iterations of a preset, with two runners.

    Args:
        seconds: how long at least, at most until `_LIMIT_S`; five iterations or more.
        preset: name of a preset, or a config file. The time of an iteration of the preset
            ``deeprm`` is compared with the paper's; of any preset whose algorithm samples and
            learns in turns, the speed of the one is compared with that of the other.
    """
    runners = min(2, num_local_cpus())
    config = load_config(preset, [f"resources.num_runners={runners}"])
    times, rows = _iterate(config, seconds)
    training = config.training
    iteration = (
        f"{training.jobsets} jobsets x {training.episodes_per_jobset} episodes, {runners} runners"
    )
    entries = []
    if preset == PRESET:
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
        decisions = training.jobsets * training.episodes_per_jobset
        entries.append(
            Entry(
                f"training.{config.name}_learning",
                f"decisions/s, {iteration}",
                Sample(tuple(_rate(row, "time/learn_s", decisions) for row in rows)),
                "sampling in the same iterations",
                Sample(tuple(_rate(row, "time/sample_s", decisions) for row in rows)),
            )
        )
    return entries


def _rate(row: dict[str, float], clock: str, episodes: int) -> float:
    return row["train/decisions_per_episode"] * episodes / row[clock]


def _iterate(
    config: ExperimentConfig, seconds: float
) -> tuple[list[float], list[dict[str, float]]]:
    """Seconds and metrics of each iteration, warm-up apart."""
    with ray_session(config):
        from rllib_configs.builders import build_algorithm, iteration_metrics

        with without_ray_chatter():
            algorithm = build_algorithm(config)
        try:
            for _ in range(_WARM_UPS):
                algorithm.train()
            times: list[float] = []
            rows: list[dict[str, float]] = []
            while len(times) < ROUNDS or sum(times) < min(seconds, _LIMIT_S):
                began = time.perf_counter()
                result = algorithm.train()
                times.append(time.perf_counter() - began)
                rows.append(iteration_metrics(result))
        finally:
            algorithm.stop()
    return times, rows
