"""A trained policy as an MLflow model: observations in, actions out; without Ray, without pickles.

The model holds a copy of the policy's folder, that is, its config and its weights as plain tensors,
and names this module as its loader. Whoever loads it needs metasched's packages, but no Ray. They
are not among its requirements: no index has them, and anybody could register their name there.

    model = mlflow.pyfunc.load_model("models:/my-policy/1")
    env = gymnasium.make("cluster_env:DeepRM-v0", observation="state", mask_in_observation=True)
    observation, info = env.reset(seed=0)
    batch = {name: array[None] for name, array in observation.items()}
    action = model.predict(batch)[0]

``observations`` are states, ``(n, state_size)``, of the dtype that the world has them in: uint8 in
DeepRM's, int32 in others. All other observations are computed from them. ``action_mask``, int8
``(n, num_actions)``, is that of the environment. An action that the mask forbids would book
nothing; void, which is returned instead, does the same.
"""

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds import get_spec

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

    from rllib_configs.policy_files import LearnedPolicy
    from rllib_configs.schema import ExperimentConfig

OBSERVATIONS, MASK = "observations", "action_mask"
REQUIREMENTS = ("mlflow", "gymnasium", "numba", "numpy", "pydantic", "torch")
_FILES = ("config.yaml", "weights.pt")
_EXAMPLES = 4


class PolicyModel:
    """What MLflow calls.

    Args:
        policy: takes states.
        dtype: of the states of its world.
    """

    def __init__(self, policy: "LearnedPolicy", dtype: DTypeLike | None) -> None:
        self.policy, self._dtype = policy, dtype

    def predict(
        self, model_input: Mapping[str, Any], params: Mapping[str, Any] | None = None
    ) -> NDArray[np.int64]:
        """Actions, int64 ``(n,)``.

        Args:
            model_input: ``observations`` and ``action_mask``; see this module.
            params: ``decode``, argmax or sample; ``void_bias``, see `LearnedPolicy`; ``seed`` of
                the draws, negative for new ones at each call.

        Raises:
            InputError: if the input is of another shape, or there is no such way to decode.
        """
        given = {**_defaults(self.policy), **(params or {})}
        if given["decode"] not in ("argmax", "sample"):
            raise InputError(f"decode is argmax or sample, not {given['decode']!r}")
        states = np.ascontiguousarray(model_input[OBSERVATIONS], dtype=self._dtype)
        mask = np.asarray(model_input[MASK]).astype(bool)
        if states.ndim != 2 or mask.shape[:1] != states.shape[:1]:
            raise InputError(
                f"{OBSERVATIONS} and {MASK} need one row for each state, but have the shapes "
                f"{states.shape} and {mask.shape}"
            )
        seed = int(given["seed"])
        uniforms = np.random.default_rng(None if seed < 0 else seed).random(len(states))
        policy = replace(self.policy, decode=given["decode"], void_bias=float(given["void_bias"]))
        actions = policy.act(states, uniforms).astype(np.int64)
        return np.where(mask[np.arange(len(states)), actions], actions, mask.shape[1] - 1)


def _load_pyfunc(path: str) -> PolicyModel:
    """Called by MLflow with the folder of the policy's files. No code in them is ever run."""
    from rllib_configs.policy_files import load_policy

    policy, config = load_policy(path)
    return PolicyModel(policy, config.task.world.state_space.dtype)


def build_model(policy: Path, target: Path, model_id: str, run_id: str) -> None:
    """Writes the folder of a model.

    Args:
        policy: folder of a policy.
        target: folder to create.
        model_id: MLflow's id of the model.
        run_id: MLflow's id of the run that it is from.

    Raises:
        InputError: if there is no policy, or it is broken.
    """
    import mlflow.pyfunc
    from mlflow.models import Model

    from rllib_configs.policy_files import load_policy

    learned, config = load_policy(policy)
    data = target.parent / "data"
    data.mkdir()
    for name in _FILES:
        shutil.copyfile(policy / name, data / name)
    mlflow.pyfunc.save_model(
        str(target),
        loader_module=__name__,
        data_path=str(data),
        mlflow_model=Model(run_id=run_id, model_id=model_id),
        signature=_signature(config, learned),
        input_example=example(config),
        pip_requirements=[
            f"{name}=={metadata.version(name).partition('+')[0]}" for name in REQUIREMENTS
        ],
    )


def may_be_model(config: "ExperimentConfig", register: str | None = None) -> bool:
    """Whether a policy answers observations by one action each, as a model does: agents do not.

    Raises:
        InputError: if it does not and is to be registered.
    """
    agents = get_spec(config.task.world.kind).environments.agents
    if agents and register is not None:
        raise InputError(
            f"policies of agents in the world {config.task.world.kind} are kept as artifacts and "
            f"are no models, so there is none to register as {register}"
        )
    return not agents


def fingerprint(policy: Path) -> str:
    """Tells the weights of one policy from those of another."""
    digest = hashlib.sha256()
    for name in _FILES:
        digest.update((policy / name).read_bytes())
    return digest.hexdigest()[:32]


def example(config: "ExperimentConfig") -> dict[str, NDArray[Any]]:
    """The first observations of an episode of the task, as the environment gives them."""
    from cluster_env.envs import ClusterEnv

    world = config.task.world
    try:
        workload = config.task.build().workload
    except InputError:  # its trace is somewhere else
        workload = None
    env = ClusterEnv(world=world, workload=workload, observation="state", mask_in_observation=True)
    seen = [env.reset(seed=config.seed)[0]]
    void = world.num_actions - 1
    seen += [env.step(void)[0] for _ in range(_EXAMPLES - 1)]
    return {name: np.stack([one[name] for one in seen]) for name in (OBSERVATIONS, MASK)}


def _signature(config: "ExperimentConfig", policy: "LearnedPolicy") -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ParamSchema, ParamSpec, Schema, TensorSpec

    world = config.task.world
    inputs: list[Any] = [
        TensorSpec(np.dtype(world.state_space.dtype), (-1, *world.state_space.shape), OBSERVATIONS),
        TensorSpec(np.dtype(np.int8), (-1, world.num_actions), MASK),
    ]
    defaults = _defaults(policy)
    params = [
        ParamSpec("decode", "string", defaults["decode"]),
        ParamSpec("void_bias", "double", defaults["void_bias"]),
        ParamSpec("seed", "long", defaults["seed"]),
    ]
    actions: list[Any] = [TensorSpec(np.dtype(np.int64), (-1,))]
    return ModelSignature(Schema(inputs), Schema(actions), ParamSchema(params))


def _defaults(policy: "LearnedPolicy") -> dict[str, Any]:
    """The likeliest action, but of networks that without draws would wait for ever."""
    waits = type(policy.network).__name__ == "DeepRMSampler"
    return {"decode": "sample" if waits else "argmax", "void_bias": 0.0, "seed": -1}
