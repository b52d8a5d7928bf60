"""Compiles everything that is compiled, once: ``python -m tune_jobs.warm``."""

import logging
import multiprocessing
import warnings

import cluster_env.warm
from cluster_env.worlds import WORLDS


def main() -> None:
    """Entry point of ``python -m tune_jobs.warm``.

    A second process compiles the worlds while this one compiles what learns, and then the worlds
    from the last to the first. What both need is compiled by one of them.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    spawn = multiprocessing.get_context("spawn")
    second = spawn.Process(target=cluster_env.warm.main)  # it does without Ray and PyTorch
    second.start()
    with warnings.catch_warnings(action="ignore"):
        from rllib_configs.warm import warm

        warm()
        cluster_env.warm.warm(tuple(reversed(WORLDS.names())))
    second.join()


if __name__ == "__main__":
    main()
