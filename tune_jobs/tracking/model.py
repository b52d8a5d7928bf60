"""A trained policy as an MLflow model: observations in, actions out; without Ray, without pickles.

The model holds a copy of the policy's folder, that is, its config and its weights as plain tensors,
and the packages that read them. So it can be served where metasched is not installed: no index has
it, and anybody could register the name there. `rllib_configs.served_policy` is its loader.

    model = mlflow.pyfunc.load_model("models:/my-policy/1")
    env = gymnasium.make("cluster_env:DeepRM-v0", observation="state", mask_in_observation=True)
    observation, info = env.reset(seed=0)
    batch = {name: array[None] for name, array in observation.items()}
    action = model.predict(batch)[0]

``observations`` are states, ``(n, state_size)``, of the dtype that the world has them in: uint8 in
DeepRM's, int32 in others. All other observations are computed from them. ``action_mask``, int8
``(n, num_actions)``, is that of the environment.
"""

import hashlib
import importlib.util
import json
import shutil
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.worlds import get_spec
from rllib_configs.config.extensions import GROUP, allowed_imports
from rllib_configs.policy_files import CONFIG_FILE, load_policy, weights_file
from rllib_configs.served_policy import (
    DEFAULTS,
    EXTENSIONS_FILE,
    MASK,
    OBSERVATIONS,
    _load_pyfunc,
)
from tune_jobs.tables.printing import code_span

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

    from rllib_configs.config.schema import ExperimentConfig

__all__ = [
    "ABOUT_MODELS",
    "_load_pyfunc",  # models of earlier versions name this module as their loader
    "about",
    "build_model",
    "example",
    "fingerprint",
    "may_be_model",
]

REQUIREMENTS = ("mlflow", "gymnasium", "numba", "numpy", "pydantic", "pyyaml", "scipy", "torch")
"""What the packages of a model import, and MLflow."""
ABOUT_MODELS = (
    "A policy that decides which waiting job starts next. `mlflow.pyfunc.load_model` gives a model "
    "that takes `observations` (states) and `action_mask`, one row for each decision, and returns "
    "actions; README.md of tune_jobs has an example."
)
PACKAGES = ("cluster_env", "rllib_configs", "meta")
_LOADER = "rllib_configs.served_policy"
_EXAMPLES = 4


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

    _, config = load_policy(policy)
    data, code = target.parent / "data", target.parent / "code"
    data.mkdir()
    for file in _files(policy):
        shutil.copyfile(file, data / file.name)
    extensions = [*allowed_imports(), *(e.module for e in metadata.entry_points(group=GROUP))]
    (data / EXTENSIONS_FILE).write_text(json.dumps(sorted(set(extensions))))
    for package in PACKAGES:
        _copy_code(package, code)
    for top in {name.partition(".")[0] for name in allowed_imports()} - set(PACKAGES):
        _copy_code(top, code)
    mlflow.pyfunc.save_model(
        str(target),
        loader_module=_LOADER,
        data_path=str(data),
        code_paths=[str(path) for path in sorted(code.iterdir())],
        mlflow_model=Model(run_id=run_id, model_id=model_id),
        signature=_signature(config),
        input_example=example(config),
        metadata={"about": about(config)},
        pip_requirements=[
            f"{name}=={metadata.version(name).partition('+')[0]}" for name in REQUIREMENTS
        ],
    )


def _copy_code(name: str, target: Path) -> None:
    """Copies the Python files of a module or package, unless it is installed.

    What is installed belongs to a distribution, perhaps with compiled parts; it is to be installed
    where the model is served.
    """
    spec = importlib.util.find_spec(name)
    source = Path(spec.origin) if spec is not None and spec.origin else None
    if source is None or source.suffix != ".py":
        return
    installed = any(
        source.is_relative_to(sysconfig.get_path(kind)) for kind in ("purelib", "stdlib")
    )
    if installed and name not in PACKAGES:
        return
    target.mkdir(exist_ok=True)
    if source.name != "__init__.py":
        shutil.copyfile(source, target / source.name)
        return
    for path in sorted(source.parent.rglob("*.py")):
        copy = target / name / path.relative_to(source.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


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
    for file in _files(policy):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def _files(policy: Path) -> tuple[Path, Path]:
    return policy / CONFIG_FILE, weights_file(policy)


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


def about(config: "ExperimentConfig") -> str:
    """What the model of a policy takes and answers, in Markdown."""
    world = config.task.world
    env_ids = list(get_spec(world.kind).environments.ids)
    env = f"`cluster_env:{env_ids[0]}`" if env_ids else "its environment"
    void, space = world.num_actions - 1, world.state_space
    return (
        f"A policy of {code_span(config.name)} for the world `{world.kind}`: it decides which "
        f"waiting job starts next. `observations`, {space.dtype} `(n, {space.shape[0]})`, has a "
        f"state in each row, as {env} with the options of the policy's config gives it with "
        f'`observation="state"`; `action_mask`, int8 `(n, {void + 1})`, is what it gives with '
        f"`mask_in_observation=True`. The answer, int64 `(n,)`, has an action for each row: the "
        f"number of the job to start among those that the state shows, or {void} for none. "
        f"`input_example.json` has {_EXAMPLES} rows. It is the likeliest action unless `params` "
        f"says `decode: sample`. Needs `requirements.txt` and no installation of metasched."
    )


def _signature(config: "ExperimentConfig") -> "ModelSignature":
    from mlflow.models import ModelSignature
    from mlflow.types import ParamSchema, ParamSpec, Schema, TensorSpec

    world = config.task.world
    inputs: list[Any] = [
        TensorSpec(np.dtype(world.state_space.dtype), (-1, *world.state_space.shape), OBSERVATIONS),
        TensorSpec(np.dtype(np.int8), (-1, world.num_actions), MASK),
    ]
    params = [
        ParamSpec("decode", "string", DEFAULTS["decode"]),
        ParamSpec("void_bias", "double", DEFAULTS["void_bias"]),
        ParamSpec("seed", "long", DEFAULTS["seed"]),
    ]
    actions: list[Any] = [TensorSpec(np.dtype(np.int64), (-1,))]
    return ModelSignature(Schema(inputs), Schema(actions), ParamSchema(params))
