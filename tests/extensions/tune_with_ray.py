"""metasched in a Ray Tune script of one's own, two trials: ``python tune_with_ray.py OUT``."""

import sys
from pathlib import Path

from ray import tune

import metasched


def search(out):
    config = metasched.ReinforceConfig().environment("deeprm-smoke")
    config.env_runners(num_env_runners=0)
    config.training(lr=tune.grid_search([1e-3, 1e-2]), jobsets=4, episodes_per_jobset=4)
    tuner = tune.Tuner(
        config.algo_class,
        param_space=config,
        tune_config=tune.TuneConfig(metric="env_runners/episode_return_mean", mode="max"),
        run_config=tune.RunConfig(
            stop={"training_iteration": 2}, storage_path=str(Path(out).absolute())
        ),
    )
    return tuner.fit()


if __name__ == "__main__":
    print(search(sys.argv[1]).get_best_result().config["lr"])
