"""`metasched.record`, and a training from what it writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metasched
from meta.panda.records import Records
from rllib_configs.policy_files import load_policy, read_weights
from tests.tune_jobs.shown_commands import prepare_for
from tune_jobs import cli
from tune_jobs.runs.history import History

SMALL = ("task.workload.window=30", "training.advisor=flat", "training.units=2")


def give(*words: str) -> int:
    return cli.run(cli.metasched, list(words))


def settings(*changes: str) -> list[str]:
    return [word for change in (*SMALL, *changes) for word in ("--set", change)]


@pytest.mark.integration
def test_an_advisor_is_trained_from_records_and_goes_on_to_the_same_weights(
    local_ray: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its policy is compared like any other."""
    path, run = tmp_path / "it.parquet", tmp_path / "run"
    metasched.record("panda-elastic", path, changes=SMALL, num_jobsets=2, num_episodes=4)
    changes = settings(
        *("training.algorithm=offline", f"training.records={path}", "training.iterations=4"),
        *("training.steps=3", "checkpoint.every=2", "evaluation.every=0", "evaluation.jobsets=2"),
        *("tracking.enabled=false", "training.lr=0.01"),
    )
    assert give("train", "panda-elastic", *changes, "--run", str(run), "--runners", "0") == 0
    weights = read_weights(run)[0]
    losses = [row["train/loss"] for row in History(run / "metrics.csv").rows()]
    assert losses[-1] < losses[0]
    (middle,) = (run / "checkpoints").glob("*2")
    assert give("train", "--resume", str(middle)) == 0
    again = read_weights(run)[0]
    assert all(np.array_equal(again[name], value) for name, value in weights.items())
    policy = load_policy(run, decode="sample")[0]
    assert not policy.network._draws  # as the agents of the records did not
    compare = ("--jobsets", "2", "--decode", "argmax")
    assert give("compare", "--policies", f"shortest_fit,{run}", *compare) == 0
    assert "panda-elastic" in capsys.readouterr().out


def test_a_run_is_recorded_as_it_acts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, all consumers have the actors of its policy, which is one of zeros."""
    monkeypatch.chdir(tmp_path)
    prepare_for(("compare", "--policies", "runs/panda-it"))
    few: dict[str, Any] = {"num_jobsets": 1, "num_episodes": 2, "noise": 0.0}
    metasched.record("runs/panda-it", "it.parquet", **few)
    assert (Records.read(Path("it.parquet")).weights == 0).all()
    with pytest.raises(metasched.InputError, match="takes no changes"):
        metasched.record("runs/panda-it", "more.parquet", changes=SMALL, **few)
