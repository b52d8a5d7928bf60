"""RLlib's own PPO, with nothing of ours but the environment: ``python plain_ppo.py SEED [STEPS]``.

It prints means on held-out jobsets: those of PPO, with the most probable action, and of two rules.
"""

import sys
import time

import numpy as np
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from cluster_env.core.metric import utilization
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate
from cluster_env.evaluation.metrics import longest_wait, wait
from cluster_env.workloads import sample_jobsets
from cluster_env.worlds import get_heuristic
from cluster_env.worlds.deeprm import DeepRM
from cluster_env.worlds.deeprm.observations import compact, live_mask
from cluster_env.worlds.deeprm.workloads import BimodalWorkload

WORLD = DeepRM()


def config_of(seed, steps):
    return (
        PPOConfig()
        .environment(
            "metasched:DeepRM-v0",
            env_config={"observation": "compact", "mask_in_observation": True},
        )
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=16,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule,
                model_config={"fcnet_hiddens": [64, 64], "vf_share_layers": False},
            )
        )
        .training(
            lr=[[0, 1e-3], [steps, 1e-5]],
            gamma=1.0,
            lambda_=0.6,
            train_batch_size_per_learner=4000,
            minibatch_size=250,
            num_epochs=6,
            vf_clip_param=float("inf"),  # the default, 10, is meant for returns of 10
            vf_loss_coeff=0.1,
            use_kl_loss=False,
        )
        .debugging(seed=seed)
    )


class TrainedPolicy:
    name = "plain PPO"

    def __init__(self, module):
        self.module = module

    def act(self, states, uniforms):
        seen = {
            "observations": torch.from_numpy(compact(WORLD.layout, states)),
            "action_mask": torch.from_numpy(live_mask(WORLD, states).astype(np.float32)),
        }
        with torch.no_grad():
            logits = self.module.forward_inference({"obs": seen})["action_dist_inputs"]
        return logits.argmax(dim=1).numpy().astype(np.int32)


def measured(module, num_jobsets=200):
    jobsets = sample_jobsets(BimodalWorkload(load=0.7), 0, Split.HELD_OUT, range(num_jobsets))
    rules = [get_heuristic(name, WORLD) for name in ("sjf", "tetris:0.005")]
    found = {}
    for policy in (TrainedPolicy(module), *rules):
        schedule = evaluate(policy, jobsets, WORLD)
        of_each = {
            "slowdown": schedule.slowdown,
            "utilization": utilization(schedule),
            "wait": wait(schedule),
            "longest wait": longest_wait(schedule),
        }
        found[policy.name] = {name: float(values.mean()) for name, values in of_each.items()}
    return found


if __name__ == "__main__":
    seed, steps = int(sys.argv[1]), int((sys.argv[2:] or [100_000])[0])
    torch.set_num_threads(1)
    algorithm = config_of(seed, steps).build_algo()
    began, sampled = time.monotonic(), 0
    while sampled < steps and time.monotonic() - began < 900:
        sampled = algorithm.train()["num_env_steps_sampled_lifetime"]
    print(
        f"{sampled:,.0f} steps, {time.monotonic() - began:.0f} s, CPU {time.process_time():.0f} s"
    )
    print(measured(algorithm.get_module()))
    algorithm.stop()
