"""A policy in MLflow: a model that needs no Ray and holds no pickled class."""

import contextlib
import json
import os
import pickletools
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Purpose, generator
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policy_files import load_policy, write_policy
from tests.waiting import PATIENCE_S
from tune_jobs.sync import command as sync
from tune_jobs.tracking import Tracker, local_store, local_uri
from tune_jobs.tracking.model import _load_pyfunc, example
from tune_jobs.tracking.notes import NOTE_TAG, sections_of
from tune_jobs.tracking.recording import annotate

Runs = Callable[[], dict[str, Any]]


def small_policy(folder: Path, *overrides: str, preset: str = "deeprm-ppo") -> ExperimentConfig:
    """A set scorer with weights that nobody has trained."""
    config = load_config(preset, list(overrides))
    rng = generator(0, Purpose.INIT)
    from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions

    options = SetScorerOptions.of(config.training).without_critic
    network = SetScorer(config.task.world.feature_names, options)
    weights = {
        f"network.{name}": (rng.normal(0, 0.05, tuple(value.shape))).astype(np.float32)
        for name, value in network.state_dict().items()
    }
    write_policy(weights, config, folder)
    return config


def played(steps: int = 40) -> dict[str, np.ndarray]:
    """What the registered environment shows while a job is started now and then."""
    env = gymnasium.make(
        "cluster_env:DeepRM-v0", observation="state", mask_in_observation=True, mask="start_now"
    )
    observation, _ = env.reset(seed=4)
    seen = []
    for step in range(steps):
        seen.append(observation)
        observation, *_ = env.step(step % 3 if step % 4 else 10)
    return {name: np.stack([one[name] for one in seen]) for name in seen[0]}


def test_a_registered_model_acts_like_the_policy(
    run_dir: Path, client: Any, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; `test_served_model` is about one without Ray."""
    import mlflow

    small_policy(run_dir / "policy")
    tracker = Tracker.open(run_dir, run_name="r")
    tracker.model(run_dir / "policy", register="my policy")
    tracker.model(run_dir / "policy", register="my policy")
    assert tracker.close().message == ""
    [version] = client.search_model_versions("name = 'my policy'")
    assert version.run_id == runs()["r"].info.run_id
    [logged] = client.search_logged_models(["1"])
    monkeypatch.setattr(sys, "path", [*sys.path])  # MLflow adds the model's own code
    model = mlflow.pyfunc.load_model(logged.artifact_location)
    batch = played()
    drawn = model.predict(batch, params={"decode": "sample", "seed": 3}).tolist()
    policy, _ = load_policy(run_dir, decode="argmax")
    uniforms = np.random.default_rng(3).random(len(batch["observations"]))
    assert model.predict(batch).tolist() == policy.act(batch["observations"], uniforms).tolist()
    policy, _ = load_policy(run_dir, decode="sample")
    assert drawn == policy.act(batch["observations"], uniforms).tolist()
    assert len(set(drawn)) > 2
    assert model.metadata.get_params_schema().to_dict()


def test_no_file_of_a_model_but_its_packages_can_run_code(
    tmp_path: Path, run_dir: Path, client: Any
) -> None:
    small_policy(run_dir / "policy")
    tracker = Tracker.open(run_dir, run_name="r")
    tracker.model(run_dir / "policy")
    assert tracker.close().message == ""
    [model] = client.search_logged_models(["1"])
    assert "`observations`, uint8 `(n, 83)`, has a state in each row" in model.tags[NOTE_TAG]
    folder = Path(model.artifact_location.removeprefix("file://"))
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files >= {"MLmodel", "data/data/config.yaml", "data/data/weights.pt"} or files >= {
        "MLmodel",
        "data/config.yaml",
        "data/weights.pt",
    }
    assert not [name for name in files if name.endswith((".pkl", ".pyc", ".pickle"))]
    code = [name for name in files if name.endswith(".py")]
    assert code
    for name in code:  # ours, as it is, and nothing else
        ours = Path(__file__).parents[3] / name.removeprefix("code/")
        assert (folder / name).read_bytes() == ours.read_bytes()
    assert "input_example.json" in files
    assert "loader_module: rllib_configs.served_policy" in (folder / "MLmodel").read_text()
    requirements = (folder / "requirements.txt").read_text()
    assert "torch==" in requirements
    assert "metasched" not in requirements  # a stranger could register the name
    [weights] = folder.rglob("weights.pt")
    with zipfile.ZipFile(weights) as archive:
        [data] = [name for name in archive.namelist() if name.endswith("data.pkl")]
        named = [
            str(argument)
            for code, argument, _ in pickletools.genops(archive.read(data))
            if code.name in ("GLOBAL", "STACK_GLOBAL")
        ]
    assert set(named) <= {
        "torch._utils _rebuild_tensor_v2",
        "torch FloatStorage",
        "collections OrderedDict",
    }


def test_a_policy_of_agents_is_no_model_and_holds_nothing_up(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    config = load_config("panda-small")
    write_policy({"network.shared": np.zeros(1, np.float32)}, config, run_dir / "policy")
    tracker = Tracker.open(run_dir, run_name="r")
    tracker.model(run_dir / "policy")
    ended = tracker.close()
    assert (ended.lost, ended.message) == (0, "")
    assert not client.search_logged_models([runs()["r"].info.experiment_id])
    result = CliRunner().invoke(sync, [str(run_dir), "--register", "agents"])
    assert isinstance(result.exception, InputError)
    assert "are no models, so there is none to register as agents" in str(result.exception)


def test_a_server_gets_a_model_of_its_own(run_dir: Path, empty_store: Path) -> None:
    import mlflow

    small_policy(run_dir / "policy")
    tracker = Tracker.open(run_dir, run_name="r")
    tracker.note("Result", "**4**")
    tracker.model(run_dir / "policy", register="late")
    assert tracker.close().message == ""
    server = run_dir.parent / "server"
    server.mkdir()
    local_store(server).write_bytes(empty_store.read_bytes())
    for _ in range(2):
        done = CliRunner().invoke(sync, [str(run_dir), "--tracking-uri", local_uri(server)])
        assert done.exit_code == 0, done.output
        assert "Refused" not in done.output
    client = mlflow.MlflowClient(local_uri(server), local_uri(server))
    [version] = client.search_model_versions("name = 'late'")
    assert int(version.version) == 1
    assert "### Result\n\n**4**" in version.description
    assert "which waiting job starts next" in client.get_registered_model("late").description


def test_what_is_found_later_stands_with_the_registered_model_too(
    run_dir: Path, empty_store: Path, client: Any
) -> None:
    """A comparison with more rules than training's may say the opposite of training's note."""
    import mlflow

    small_policy(run_dir / "policy")
    with Tracker.open(run_dir, run_name="r") as tracker:
        tracker.note("Result", "better than one rule")
        tracker.model(run_dir / "policy", register="late")
    server = run_dir.parent / "server"
    server.mkdir()
    local_store(server).write_bytes(empty_store.read_bytes())
    send = [str(run_dir), "--tracking-uri", local_uri(server)]
    assert CliRunner().invoke(sync, send).exit_code == 0
    [version] = client.search_model_versions("name = 'late'")
    client.update_model_version("late", version.version, f"Mine.\n\n{version.description}")
    assert annotate(run_dir, "Comparison", "worse than another")
    assert annotate(run_dir, "Comparison", "worse than two others")
    assert CliRunner().invoke(sync, send).exit_code == 0
    there = mlflow.MlflowClient(local_uri(server), local_uri(server))
    for one in (client, there):
        [version] = one.search_model_versions("name = 'late'")
        assert list(sections_of(version.description)) == ["Result", "Comparison"]
        assert "worse than two others" in version.description
        assert "worse than another" not in version.description
        assert version.description.startswith("Mine.") == (one is client)


def test_a_forbidden_action_becomes_void(tmp_path: Path) -> None:
    config = small_policy(tmp_path)
    model = _load_pyfunc(str(tmp_path))
    batch = example(config)
    nothing = {**batch, "action_mask": np.zeros_like(batch["action_mask"])}
    assert set(model.predict(nothing)) == {config.task.world.num_actions - 1}
    with pytest.raises(InputError, match="one row for each state"):
        model.predict({name: array[0] for name, array in batch.items()})
    with pytest.raises(InputError, match="argmax or sample"):
        model.predict(batch, params={"decode": "best"})


@pytest.mark.parametrize("preset", ["hpc-smoke", "accrual-smoke"])
def test_states_of_other_worlds_are_read_as_they_are(tmp_path: Path, preset: str) -> None:
    """Their numbers are larger than those of a DeepRM state, which fit into a byte."""
    small_policy(tmp_path, preset=preset)
    policy, config = load_policy(tmp_path, decode="argmax")
    states = example(config)["observations"]
    assert states.max() > 255
    free = np.ones((len(states), config.task.world.num_actions), np.int8)
    given = {"observations": states.tolist(), "action_mask": free.tolist()}  # as JSON brings them
    found = _load_pyfunc(str(tmp_path)).predict(given, params={"decode": "argmax"})
    assert found.tolist() == policy.act(states, np.zeros(len(states))).tolist()


@pytest.mark.integration
@pytest.mark.slow
def test_a_registered_model_answers_over_http(
    tmp_path: Path, run_dir: Path, free_port: int, client: Any
) -> None:
    small_policy(run_dir / "policy")
    with Tracker.open(run_dir, run_name="r"):
        pass
    done = CliRunner().invoke(sync, [str(run_dir), "--register", "served"])
    assert done.exit_code == 0, done.output
    [version] = client.search_model_versions("name = 'served'")
    assert int(version.version) == 1
    [model] = client.search_logged_models(["1"])
    folder = Path(model.artifact_location.removeprefix("file://"))
    question = (folder / "serving_input_example.json").read_bytes()
    uri = local_uri(tmp_path)
    arguments = ["--model-uri", "models:/served/1", "--env-manager", "local"]
    arguments += ["--host", "127.0.0.1", "--port", str(free_port), "--workers", "1"]
    with (tmp_path / "serve.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "models", "serve", *arguments],
            env={
                **os.environ,
                "MLFLOW_TRACKING_URI": uri,
                "MLFLOW_REGISTRY_URI": uri,
                "PYTHONPATH": os.pathsep.join(sys.path),
                # MLflow looks for uvicorn there.
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
            cwd=tmp_path,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        answer = ask_until_it_answers(f"http://127.0.0.1:{free_port}/invocations", question, server)
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended, which is another error
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    policy, config = load_policy(run_dir, decode="argmax")
    states = example(config)["observations"]
    expected = policy.act(states, np.zeros(len(states)))
    assert answer == {"predictions": expected.tolist()}


def ask_until_it_answers(url: str, question: bytes, server: subprocess.Popen) -> Any:
    request = urllib.request.Request(url, question, {"Content-Type": "application/json"})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read()) from error
        except OSError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.parametrize(
    ("name", "said"), [("../x", "--register takes letters"), ("fine", "has no policy to register")]
)
def test_what_cannot_be_registered_is_said(run_dir: Path, name: str, said: str) -> None:
    with Tracker.open(run_dir, run_name="r"):
        pass
    result = CliRunner().invoke(sync, [str(run_dir), "--register", name])
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
