"""Runs that can be adapted but that nobody trained, and a family of small tasks."""

from pathlib import Path

import numpy as np
import yaml

from meta.adaptation import untrained_policy
from rllib_configs.config.loading import load_config, write_config
from rllib_configs.config.schema import prepare
from rllib_configs.policy_files import write_policy
from tests.tune_jobs.untrained_runs import SMALL_TASK

NARROW = (*SMALL_TASK, "training.hidden=8")
QUICK = (
    *("--tasks", "2", "--seeds", "2", "--steps", "0,1,2", "--episodes", "4"),
    *("--jobsets", "2"),
    *("--evaluate", "4", "--rates", "0.5,2", "--rate-tasks", "2"),
)
JOINT = ("name=joint", "training.algorithm=maml", "training.inner_steps=0")
FOMAML = ("name=fomaml", "training.algorithm=maml", "training.inner_steps=1")
ONE_TASK = ("name=alone",)


def make_scorer(
    folder: Path,
    *overrides: str,
    seed: int = 0,
    rates: float | None = None,
    preset: str = "deeprm-ppo",
) -> Path:
    """Writes a run with the initial weights of a seed, and returns its folder.

    Args:
        folder: of the run.
        overrides: of the preset; deeprm-ppo is made small first.
        seed: of the weights.
        rates: inner rate of every parameter, as if they had been learned.
        preset: what the run was trained with.
    """
    changes = [f"seed={seed}", *overrides]
    if preset == "deeprm-ppo":
        config = load_config(preset, [*NARROW, *changes])
    else:
        config = prepare(load_config(preset, changes))
    policy = untrained_policy(config, seed)
    learned = {
        f"rates.{name.replace('.', '_')}": np.array(np.log(rates), np.float32)
        for name in (policy.rates if rates else ())
    }
    write_policy({**policy.weights, **learned}, config, folder / "policy")
    write_config(config, folder / "config.yaml")
    return folder


def make_family(path: Path) -> Path:
    """Writes the file of a family of small tasks."""
    base = load_config("deeprm-ppo", list(NARROW)).task.model_dump(mode="json")
    vary = {"objectives": ["slowdown", "makespan"], "load": [0.5, 0.9]}
    path.write_text(yaml.safe_dump({"name": "small", "base": base, "vary": vary}))
    return path
