"""The examples of the page about Python run one after the other, with less of everything."""

import re
from pathlib import Path

import pytest

from cluster_env.worlds import get_spec
from tests.conftest import REPOSITORY
from tests.shown_outputs import shown_outputs

PAGE = REPOSITORY / "tune_jobs" / "api" / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SMALLER = {
    '"training.iterations": 40,': '"training.iterations": 2, "training.jobsets": 12,',
    "range(100)": "range(10)",
    "num_jobsets=100": "num_jobsets=10",
    "num_jobsets=50": "num_jobsets=10",
}


@pytest.mark.integration
@pytest.mark.slow
def test_the_examples_run_one_after_the_other(
    local_ray: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    heuristics = get_spec("deeprm").heuristics
    monkeypatch.setattr(heuristics, "_things", dict(heuristics._things))
    names: dict[str, object] = {"__name__": "example"}
    for size in SMALLER:
        assert any(size in example for example in EXAMPLES), size
    for example in EXAMPLES:
        for size, smaller in SMALLER.items():
            example = example.replace(size, smaller)
        exec(compile(example, PAGE.name, "exec"), names)
    shown = capsys.readouterr().out
    for line in shown_outputs(PAGE.read_text(encoding="utf-8")):
        assert line in shown
    for said in (
        r"return -\d",
        r"sjf: starts \[",
        r"sjf on my jobs: mean slowdown \d",
        r"validation slowdown \d",
        r"utilization \d+%",
        r"load 110% tetris",
        r"mean makespan|makespan \[95%\]",
        r"\n[ >~]+ saf ",
    ):
        assert re.search(said, shown), (said, shown)
