"""A model is served where nobody has installed metasched: what it needs, it brings or names."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster_env.core.errors import InputError
from cluster_env.envs import ClusterEnv
from cluster_env.worlds import shipped_policies
from rllib_configs.config.loading import load_config
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import load_policy, write_policy
from rllib_configs.served_policy import EXTENSIONS_FILE, _load_pyfunc
from tests.tune_jobs.tracking.test_model import small_policy
from tune_jobs.tracking.model import about, build_model

NUM_STATES = 50

ANSWER = """
import importlib.abc, json, os, sys

# An editable installation would find metasched's packages, and a sibling of Python's own path, too.
sys.path[:] = [folder for folder in sys.path if not os.path.isdir(folder + "/cluster_env")]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]

class NotInstalled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("ray", "tune_jobs", "metasched"):
            raise ImportError(f"{name} is not in a fresh environment")

sys.meta_path.insert(0, NotInstalled())
import mlflow, numpy as np
answers = {}
for name, (model, batch) in json.load(open(sys.argv[1])).items():
    for package in ("cluster_env", "rllib_configs", "meta"):
        for module in [m for m in sys.modules if m.partition(".")[0] == package]:
            del sys.modules[module]
    served = mlflow.pyfunc.load_model(model)
    assert sys.modules["rllib_configs"].__file__.startswith(model), sys.modules["rllib_configs"]
    inputs = {spec.name: spec.type for spec in served.metadata.get_input_schema()}
    arrays = {key: np.array(value, inputs[key]) for key, value in batch.items()}
    answers[name] = served.predict(arrays).tolist()
print(json.dumps(answers))
"""


def write_own_network(folder: Path) -> None:
    """DeepRM's own network, with weights that nobody has trained."""
    config = load_config("deeprm-smoke")
    rng = np.random.default_rng(7)
    shapes = network_of(config).shapes(config, config.task.world)
    weights = {
        name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes.items()
    }
    write_policy(weights, config, folder)


@pytest.fixture
def policies(tmp_path: Path) -> dict[str, Path]:
    """Folders of policies: DeepRM's own network, a set scorer, one for HPC that ships trained."""
    write_own_network(tmp_path / "own" / "policy")
    small_policy(tmp_path / "scorer" / "policy")
    return {
        "own": tmp_path / "own" / "policy",
        "scorer": tmp_path / "scorer" / "policy",
        "hpc": shipped_policies()["hpc-order"],
    }


def built(policy: Path, folder: Path) -> Path:
    """A policy's model."""
    folder.mkdir()
    build_model(policy, folder / "model", "m-1", "0" * 32)
    return folder / "model"


def questions(policy_folder: Path) -> tuple[dict[str, Any], list[int]]:
    """States that the policy of a comparison comes to, and what it does in each."""
    policy, config = load_policy(policy_folder, decode="argmax")
    task = config.task.build()
    env = ClusterEnv(
        world=task.world, workload=task.workload, observation="state", mask_in_observation=True
    )
    observation, _ = env.reset(seed=3)
    seen, actions, ended = [], [], False
    while len(seen) < NUM_STATES:
        if ended:
            observation, _ = env.reset()
        seen.append(observation)
        void, chosen = task.world.num_actions - 1, int(env.choose(policy))
        # A slot without a job that fits is no different from void in the simulator.
        actions.append(chosen if observation["action_mask"][chosen] else void)
        # Jobs that are started at once leave nothing to choose from, so every other state waits.
        action = actions[-1] if len(seen) % 2 else void
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    batch = {name: np.stack([one[name] for one in seen]).tolist() for name in seen[0]}
    return batch, actions


def ask(python: Path | str, models: dict[str, Path], policies: dict[str, Path], place: Path) -> Any:
    """What models answer in an interpreter, and what is expected."""
    asked = {name: questions(folder) for name, folder in policies.items()}
    file = place / "questions.json"
    file.write_text(json.dumps({name: [str(models[name]), asked[name][0]] for name in asked}))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment.pop("METASCHED_IMPORTS", None)
    done = subprocess.run(
        [str(python), "-I", "-c", ANSWER, str(file)],
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), {name: asked[name][1] for name in asked}


def test_a_model_brings_the_packages_that_it_needs(
    tmp_path: Path, policies: dict[str, Path]
) -> None:
    models = {name: built(folder, tmp_path / f"of-{name}") for name, folder in policies.items()}
    answers, expected = ask(sys.executable, models, policies, tmp_path)
    assert answers == expected
    assert all(len(set(actions)) > 1 for actions in expected.values())


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.service
@pytest.mark.timeout(1200)  # an environment with PyTorch is installed
def test_a_fresh_environment_of_its_requirements_serves_a_model(
    tmp_path: Path, policies: dict[str, Path]
) -> None:
    """As `mlflow models serve --env-manager virtualenv` makes one."""
    models = {name: built(folder, tmp_path / f"of-{name}") for name, folder in policies.items()}
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(fresh)], check=True, timeout=200)
    requirements = {(folder / "requirements.txt").read_text() for folder in models.values()}
    (tmp_path / "requirements.txt").write_text(requirements.pop())
    assert not requirements
    install(fresh, ["-r", str(tmp_path / "requirements.txt")])
    answers, expected = ask(fresh / "bin" / "python", models, policies, tmp_path)
    assert answers == expected


def install(environment: Path, what: Sequence[str]) -> None:
    """Installs packages; skips where no index of packages can be reached."""
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "-q", "--no-compile", *what], capture_output=True, text=True, timeout=900
    )
    away = ("NewConnectionError", "Temporary failure", "No matching distribution", "ReadTimeout")
    if done.returncode and any(word in done.stderr for word in away):
        pytest.skip(f"no index of packages can be reached: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def test_a_model_acts_by_its_likeliest_action_unless_it_is_asked_otherwise(tmp_path: Path) -> None:
    """DeepRM's own network, too, whose model drew its actions."""
    write_own_network(tmp_path)
    batch, expected = questions(tmp_path)
    model = _load_pyfunc(str(tmp_path))
    for _ in range(5):
        assert model.predict(batch).tolist() == expected
    drawn = {tuple(model.predict(batch, {"decode": "sample"})) for _ in range(5)}
    assert len(drawn) > 1


def test_an_extension_of_a_users_own_is_packed_and_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "my_rules.py").write_text("LOADED = True\n")
    monkeypatch.syspath_prepend(tmp_path / "users")
    monkeypatch.setenv("METASCHED_IMPORTS", "my_rules")
    small_policy(tmp_path / "policy")
    model = built(tmp_path / "policy", tmp_path / "model")
    assert (model / "code" / "my_rules.py").read_text() == "LOADED = True\n"
    [names] = model.rglob(EXTENSIONS_FILE)
    assert json.loads(names.read_text()) == ["my_rules"]
    _load_pyfunc(str(names.parent))
    assert sys.modules["my_rules"].LOADED


def test_an_extension_that_is_not_there_is_named_where_the_policy_needs_it(tmp_path: Path) -> None:
    small_policy(tmp_path)
    (tmp_path / EXTENSIONS_FILE).write_text('["somebodys_rules"]')
    assert _load_pyfunc(str(tmp_path)).policy.name == "deeprm-ppo"
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace("set_scorer", "somebodys_network"))
    with pytest.raises(InputError, match=r"somebodys_network.*trained with the extension somebody"):
        _load_pyfunc(str(tmp_path))


def test_a_model_says_what_it_takes(tmp_path: Path) -> None:
    config = small_policy(tmp_path / "policy")
    text = about(config)
    assert f"uint8 `(n, {config.task.world.state_space.shape[0]})`" in text
    assert 'observation="state"' in text
    model = built(tmp_path / "policy", tmp_path / "m")
    assert text.split("`")[1] in (model / "MLmodel").read_text()
    assert not [path for path in sys.path if path.startswith(str(tmp_path))]
