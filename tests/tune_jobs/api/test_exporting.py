"""Networks for other programs: from tensors, and from ONNX files, the logits of the policy."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import metasched
from cluster_env.worlds.deeprm.image import image
from tests.tune_jobs.untrained_runs import make_run
from tests.tune_jobs.untrained_scorers import make_scorer

NUM_STATES = 50


def states_with_choices(task: metasched.Task) -> NDArray[np.uint8]:
    """States of random play in which more than one action is allowed: others ask no network."""
    env = metasched.make_vec_env(task, num_envs=8, observation="state")
    rng, seen = np.random.default_rng(0), []
    _, infos = env.reset(seed=0)
    while sum(map(len, seen)) < NUM_STATES:
        actions = [rng.choice(np.flatnonzero(mask)) for mask in infos["action_mask"]]
        states, *_, infos = env.step(np.array(actions))
        seen.append(states[task.world.features(states).allowed.sum(axis=1) > 1])
    return np.concatenate(seen)[:NUM_STATES]


def assert_same_logits(run: Path, states: NDArray[np.uint8], **inputs: NDArray) -> None:
    """Skips what needs ONNX where it is not installed."""
    network = metasched.load_policy(run)[0].network
    expected, form = network.logits(states), network.tensor_form()
    assert list(form.inputs) == list(inputs)
    with torch.inference_mode():
        found = form.module(*map(torch.from_numpy, inputs.values())).numpy()
    assert np.abs(found - expected).max() < 1e-5
    assert np.ptp(expected[expected > -1e6]) > 1e-3
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    runtime = pytest.importorskip("onnxruntime")
    file = metasched.export_onnx(run, run.with_suffix(".onnx"))
    assert set(run.parent.iterdir()) == {file, run}  # one file, which holds the weights
    (exported,) = runtime.InferenceSession(file).run(["logits"], inputs)
    assert np.abs(exported - expected).max() < 1e-5


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
    with pytest.raises(metasched.InputError, match="hpc_scorer of hpc-order cannot be"):
        metasched.export_onnx("hpc-order", out)
    run = make_run(tmp_path / "run")
    monkeypatch.undo()
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    with pytest.raises(metasched.InputError, match=r"cannot write to .*nowhere"):
        metasched.export_onnx(run, out)
    assert list(tmp_path.iterdir()) == [run]
