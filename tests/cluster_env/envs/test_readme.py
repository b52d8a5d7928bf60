"""The package's README names everything that can be chosen, and its examples run."""

import re
from pathlib import Path

import pytest

import cluster_env
from cluster_env.envs import ENVIRONMENTS
from cluster_env.heuristics import HEURISTICS
from cluster_env.objectives import OBJECTIVES
from cluster_env.observations import MASKS, OBSERVATIONS
from cluster_env.simulators.rules import RULES

README = (Path(cluster_env.__file__).parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "names",
    [
        ENVIRONMENTS,
        RULES.names(),
        OBJECTIVES.names(),
        OBSERVATIONS.names(),
        MASKS.names(),
        HEURISTICS.names(),
    ],
    ids=["environments", "rules", "objectives", "observations", "masks", "heuristics"],
)
def test_every_name_is_explained(names: tuple[str, ...]) -> None:
    for name in names:
        assert re.search(rf"`{re.escape(name)}[`:]", README), f"the README does not mention {name}"


def test_examples_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(examples) >= 4
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
    assert "mean slowdown" in capsys.readouterr().out
