"""What is wrong with the start is said before Ray starts."""

from pathlib import Path

import pytest

from rllib_configs.loading import load_config, write_config
from tune_jobs import cli
from tune_jobs.runs import training


@pytest.mark.parametrize("broken", [False, True])
def test_a_start_that_is_not_there_is_refused_before_ray_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(training, "ray_session", lambda *_: pytest.fail("Ray was started"))
    start, run = tmp_path / "start", tmp_path / "run"
    if broken:
        start.mkdir()
        write_config(load_config("deeprm-smoke"), start / "config.yaml")
        (start / "weights.pt").write_bytes(b"no weights")
    arguments = ["train", "deeprm-smoke", "--run", str(run), "--set", f"training.start={start}"]
    assert cli.run(cli.metasched, arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert ("weights.pt is broken" if broken else f"no trained policy in {start}") in error
    assert not run.exists()
