"""metasched in a Ray Tune script of one's own, two trials: ``python tune_with_ray.py OUT``."""

import sys
from pathlib import Path

from ray import tune

import metasched


def train(settings):
    changes = {"training.lr": settings["lr"], "training.iterations": 2}
    config = metasched.load_config("deeprm-smoke", changes)
    algorithm = metasched.algorithm_config(config).build_algo()
    for _ in range(config.training.iterations):
        tune.report(algorithm.train()["metasched"])
    algorithm.stop()


def search(out):
    tuner = tune.Tuner(
        train,
        param_space={"lr": tune.grid_search([1e-3, 1e-2])},
        tune_config=tune.TuneConfig(metric="train/return_mean", mode="max"),
        run_config=tune.RunConfig(storage_path=str(Path(out).absolute())),
    )
    return tuner.fit()


if __name__ == "__main__":
    print(search(sys.argv[1]).get_best_result().config)
