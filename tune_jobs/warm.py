"""Compiles everything that is compiled, once: ``python -m tune_jobs.warm``."""

import logging
import multiprocessing
import warnings

import cluster_env.warm
from cluster_env.worlds import WORLDS


def main() -> None:
    """Entry point of ``python -m tune_jobs.warm``.

    A second process compiles the worlds from the last to the first, and each finds in the cache
    what the other has compiled by then.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    backwards = tuple(reversed(WORLDS.names()))
    spawn = multiprocessing.get_context("spawn")
    second = spawn.Process(target=cluster_env.warm.main, args=(backwards,))
    second.start()
    with warnings.catch_warnings(action="ignore"):
        cluster_env.warm.warm()
        from rllib_configs.warm import warm  # Ray and PyTorch, which the second does without

        warm()
    second.join()


if __name__ == "__main__":
    main()
