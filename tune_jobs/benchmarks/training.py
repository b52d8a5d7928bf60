"""A whole iteration of training in RLlib: sampling, advantages, update."""

import time

from rllib_configs.loading import load_config
from tune_jobs.benchmarks.measuring import ROUNDS, Entry, Sample
from tune_jobs.ray_session import num_local_cpus, ray_session, without_ray_chatter

QUOTED_S = 80.0  # DeepRM, section 4.3: "each training iteration takes about 80 seconds"
_QUOTED = "quoted from DeepRM's paper, not measured: about 80 s on a server with 24 cores"
_WARM_UPS = 2
_LIMIT_S = 15.0


def measure(seconds: float) -> list[Entry]:
    """Measures iterations of the preset ``deeprm``: 100 jobsets, 20 episodes each.

    Args:
        seconds: how long at least, at most until `_LIMIT_S`; five iterations or more.
    """
    runners = min(2, num_local_cpus())
    config = load_config("deeprm", [f"resources.num_runners={runners}"])
    with ray_session(config):
        from rllib_configs.builders import build_algorithm

        with without_ray_chatter():
            algorithm = build_algorithm(config)
        try:
            for _ in range(_WARM_UPS):
                algorithm.train()
            times: list[float] = []
            while len(times) < ROUNDS or sum(times) < min(seconds, _LIMIT_S):
                began = time.perf_counter()
                algorithm.train()
                times.append(time.perf_counter() - began)
        finally:
            algorithm.stop()
    training = config.training
    unit = (
        f"s for {training.jobsets} jobsets x {training.episodes_per_jobset} episodes, "
        f"{runners} runners"
    )
    return [
        Entry(
            "training.deeprm_iteration",
            unit,
            Sample(tuple(times)),
            _QUOTED,
            Sample((QUOTED_S,)),
            higher_is_better=False,
        )
    ]
