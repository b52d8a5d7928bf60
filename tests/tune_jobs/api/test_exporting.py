"""Networks for other programs: from tensors, and from ONNX files, the logits of the policy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import metasched
from cluster_env.worlds import shipped_policies
from cluster_env.worlds.deeprm.image import image
from rllib_configs.networks.registry import network_of
from rllib_configs.policy_files import policy_of
from tests.tune_jobs.untrained_runs import make_run
from tests.tune_jobs.untrained_scorers import make_scorer

NUM_STATES = 50


def states_with_choices(task: metasched.Task, count: int = NUM_STATES) -> NDArray[np.uint8]:
    """States of random play in which more than one action is allowed: others ask no network."""
    env = metasched.make_vec_env(task, num_envs=8, observation="state")
    rng, seen = np.random.default_rng(0), []
    _, infos = env.reset(seed=0)
    while sum(map(len, seen)) < count:
        actions = [rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]]
        states, *_, infos = env.step(np.array(actions))
        seen.append(states[task.world.features(states).allowed.sum(axis=1) > 1])
    return np.concatenate(seen)[:count]


def assert_same_logits(run: Path, states: NDArray[np.uint8], **inputs: NDArray) -> None:
    network = metasched.load_policy(run)[0].network
    expected, form = network.logits(states), network.tensor_form()
    assert list(form.inputs) == list(inputs)
    for name, observed in form.observe(states).items():
        assert np.array_equal(observed, inputs[name])
    with torch.inference_mode():
        found = form.module(*map(torch.from_numpy, inputs.values())).numpy()
    assert np.abs(found - expected).max() < 1e-5
    assert np.ptp(expected[expected > -1e6]) > 1e-3
    session = exported(run, run.with_suffix(".onnx"))
    assert len(list(run.parent.iterdir())) == 2  # one file beside the run, which holds the weights
    assert np.abs(session.run(["logits"], inputs)[0] - expected).max() < 1e-5


def exported(policy: str | Path, file: Path) -> Any:
    """Skips what needs ONNX where it is not installed."""
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    runtime = pytest.importorskip("onnxruntime")
    assert metasched.export_onnx(policy, file) == file
    return runtime.InferenceSession(file)


def assert_same_choices(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    assert np.abs(found - expected).max() < 1e-5
    assert np.ptp(expected[expected > -1e8]) > 10
    best, chosen = (logits.argmax(axis=1)[:, None] for logits in (expected, found))
    lost = np.take_along_axis(expected, best, 1) - np.take_along_axis(expected, chosen, 1)
    assert lost.max() == 0  # no other choice than of equal scores
    assert np.unique(best).size > 3


@pytest.mark.parametrize("name", shipped_policies())
def test_a_shipped_policy_scores_and_chooses_the_same(name: str, tmp_path: Path) -> None:
    """In a thousand states of its own episodes, each with more than one thing to do."""
    policy, config = metasched.load_policy(name, decode="argmax")
    env = metasched.make_vec_env(config.task.build(), num_envs=8, observation="state")
    (states, _), seen = env.reset(seed=0), []
    while sum(map(len, seen)) < 1000:
        seen.append(states[(policy.scores(states) > -1e8).sum(axis=1) > 1])
        states = env.step(policy.act(states, np.zeros(8)))[0].copy()
    states = np.concatenate(seen)[:1000]
    expected, form = policy.scores(states), policy.network.tensor_form()
    inputs = form.observe(states)
    with torch.inference_mode():
        found = form.module(*map(torch.from_numpy, inputs.values())).numpy()
    assert_same_choices(found, expected)
    session = exported(name, tmp_path / "policy.onnx")
    assert_same_choices(session.run(["logits"], inputs)[0], expected)
    names = session.get_modelmeta().custom_metadata_map
    for key in ("items", "context"):
        assert len(set(names[key].split(", "))) == inputs[key].shape[-1]
    fewer = {key: value[:1, :2] if key == "items" else value[:1] for key, value in inputs.items()}
    fewer["allowed"] = np.ones((1, 3), np.bool_)
    assert session.run(["logits"], fewer)[0].shape == (1, 3)


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("hpc-order", ["training.bilinear=true", "training.mode=skip"]),
        ("deeprm-operation", ["task.world.cluster.num_classes=3", "task.workload.load=1.3"]),
    ],
)
def test_all_features_of_a_scorer_count(preset: str, changes: list[str]) -> None:
    config, rng = metasched.load_config(preset, changes), np.random.default_rng(0)
    shapes = network_of(config).shapes(config, config.task.world).items()
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes}
    network = policy_of(config, weights, "drawn", "argmax").network
    states, form = states_with_choices(config.task.build(), 300), network.tensor_form()
    inputs = form.observe(states)
    found = form.module(*map(torch.from_numpy, inputs.values())).numpy()
    assert np.abs(found - network.logits(states)).max() < 1e-5
    for key, names in form.features.items():
        unseen = ~inputs[key].reshape(-1, len(names)).any(axis=0)
        assert not np.compress(unseen, names).tolist()


@pytest.mark.parametrize("show_window", [False, True])
def test_a_set_scorer_gives_the_same_logits(show_window: bool, tmp_path: Path) -> None:
    changes = (f"training.show_window={show_window}", "training.skip_connection=true")
    run = make_scorer(tmp_path / "run", *changes, seed=3)
    task = metasched.load_policy(run)[1].task.build()
    states = states_with_choices(task)
    items, context, allowed = task.world.features(states)
    if not show_window:
        context = np.delete(context, task.world.feature_names[1].index("window"), axis=1)
    assert_same_logits(run, states, items=items, context=context, allowed=allowed)


@pytest.mark.parametrize("since_column", [False, True])
def test_the_network_of_deeprm_gives_the_same_logits(since_column: bool, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", f"training.since_column={since_column}")
    task = metasched.load_policy(run)[1].task.build()
    states, layout = states_with_choices(task), task.world.layout
    cells = image(layout, states).reshape(NUM_STATES, -1).astype(np.float32)
    if since_column:
        since = np.minimum(states[:, layout.since, None], 10) / np.float32(10)
        cells = np.hstack([cells, since.repeat(layout.cluster.horizon, axis=1)])
    assert_same_logits(run, states, image=cells)


def test_what_cannot_be_exported_or_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "nowhere" / "network.onnx"
    monkeypatch.setattr("metasched.exporting.find_spec", lambda name: None)
    with pytest.raises(metasched.InputError, match=r"pip install 'metasched\[onnx\]'"):
        metasched.export_onnx("hpc-order", out)
    monkeypatch.setattr("metasched.exporting.find_spec", lambda name: name)
    monkeypatch.delattr("rllib_configs.worlds.hpc.scorer.ScorerSampler.tensor_form")
    with pytest.raises(metasched.InputError, match="hpc_scorer of hpc-order cannot be"):
        metasched.export_onnx("hpc-order", out)
    run = make_run(tmp_path / "run")
    monkeypatch.undo()
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    with pytest.raises(metasched.InputError, match=r"cannot write to .*nowhere"):
        metasched.export_onnx(run, out)
    assert list(tmp_path.iterdir()) == [run]
