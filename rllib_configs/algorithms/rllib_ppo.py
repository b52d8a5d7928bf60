"""RLlib's own PPO with its own runners, on the registered environment.

It is here to be compared with, and to show that the environment is an ordinary one: nothing of
`BatchedAlgorithm` is used. What holds there and not here:

* A runner plays the training jobsets of a run seed of its own, one after the other; RLlib gives it
  the seed plus its index. So numbers depend on the number of runners, and a runner that was
  restarted begins with its first jobset again, as all do after a resume.
* A resumed run has the same weights, optimizer state and counts, but comes to other numbers.
"""

import math
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from cluster_env.core.seeding import Purpose, generator
from rllib_configs.learning.finite import FiniteUpdates, judge_skipped
from rllib_configs.modules import network_spec
from rllib_configs.modules.masked_mlp import VIEW
from rllib_configs.schema import ExperimentConfig

ENVIRONMENT = "cluster_env:DeepRM-v0"
"""Gymnasium imports what stands before the colon first, in every process."""

_ENVS_PER_RUNNER = 16
_VALUE_WEIGHT = 0.1  # returns to go are two orders of magnitude larger than advantages
_GRADIENT_NORM = 0.5
SKIPPED = "skipped_updates"
_METRICS = {
    "train/skipped_updates": (SKIPPED,),
    "train/return_mean": ("env_runners", "episode_return_mean"),
    "train/decisions_per_episode": ("env_runners", "episode_len_mean"),
    "train/entropy": ("learners", DEFAULT_MODULE_ID, "entropy"),
    "train/gradient_norm": (
        "learners",
        DEFAULT_MODULE_ID,
        "gradients_default_optimizer_global_norm",
    ),
    "total/decisions": ("env_runners", "num_env_steps_sampled_lifetime"),
    "total/episodes": ("env_runners", "num_episodes_lifetime"),
    "workers/healthy": ("fault_tolerance", "num_healthy_workers"),
    "workers/restarts": ("fault_tolerance", "num_remote_worker_restarts"),
}


class CheckedPPOLearner(FiniteUpdates, PPOTorchLearner):
    """RLlib's learner, which would put gradients that are not finite into the weights."""

    def apply_gradients(self, gradients_dict: dict[Any, Any]) -> None:
        """Applies what is finite."""
        if self.accepts(gradients_dict):
            super().apply_gradients(gradients_dict)


class CheckedPPO(PPO):
    """RLlib's algorithm, which says what became of such gradients."""

    def training_step(self) -> None:
        """As RLlib does it."""
        super().training_step()
        answers = self.learner_group.foreach_learner(FiniteUpdates.take_skipped)
        found = [answer.get() for answer in answers if answer.ok]
        on_nan = self.config.experiment.training.on_nan
        skipped = judge_skipped(found[0] if found else (), on_nan, self.iteration + 1)
        self.metrics.log_value(SKIPPED, skipped, window=1)


class RLlibPPOConfig(PPOConfig):
    """RLlib's config, from ours."""

    def __init__(self, algo_class: type[Algorithm] | None = None) -> None:
        super().__init__(algo_class=algo_class or CheckedPPO)
        self.experiment = ExperimentConfig()

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The experiment's network."""
        return network_spec(self.experiment)

    def get_default_learner_class(self) -> type[CheckedPPOLearner]:
        """See `CheckedPPOLearner`."""
        return CheckedPPOLearner

    def follow(self, experiment: ExperimentConfig) -> None:
        """Sets what our settings say; all else is RLlib's default."""
        self.experiment = experiment
        task, training = experiment.task, experiment.training
        self.environment(
            ENVIRONMENT,
            env_config={
                "workload": task.build_workload(),
                "cluster": task.cluster.build(),
                "rules": task.rules,
                "objective": task.build_objective(),
                "max_time": task.max_time,
                **VIEW,
            },
        )
        self.env_runners(
            num_envs_per_env_runner=_ENVS_PER_RUNNER,
            gym_env_vectorize_mode="vector_entry_point",
            max_requests_in_flight_per_env_runner=8,  # RLlib's 1 drops messages silently
        )
        # Runs with neighboring seeds must not share the jobsets of a runner.
        self.debugging(seed=int(generator(experiment.seed, Purpose.INIT).integers(2**30)))
        end = training.iterations * training.decisions
        self.training(
            lr=[[0, training.lr], [end, training.lr * training.lr_end_share]],
            entropy_coeff=[[0, training.entropy], [end, 0.0]],
            gamma=training.gamma,
            lambda_=training.gae_lambda,
            train_batch_size_per_learner=training.decisions // max(1, self.num_learners),
            minibatch_size=max(1, training.decisions // training.minibatches),
            num_epochs=training.epochs,
            clip_param=training.clip,
            vf_clip_param=math.inf,  # RLlib's 10 is meant for returns of 10
            vf_loss_coeff=_VALUE_WEIGHT,
            grad_clip=_GRADIENT_NORM,
            use_kl_loss=False,
        )


def rllib_metrics(result: dict[str, Any]) -> dict[str, float]:
    """Picks what RLlib's result has of our metrics; NaN where nothing has come in yet.

    Returns are means over the last 100 episodes. RLlib's timers are averages over the whole run,
    so that the times of an iteration's parts are not among them.
    """
    found = {name: _at(result, path) for name, path in _METRICS.items()}
    decisions = _at(result, ("env_runners", "num_env_steps_sampled"))
    return {**found, "time/decisions_per_s": decisions / float(result["time_this_iter_s"])}


def _at(result: dict[str, Any], path: tuple[str, ...]) -> float:
    place: Any = result
    for name in path:
        place = place.get(name, {})
    return math.nan if isinstance(place, dict) else float(place)
