"""The package's README names everything that can be chosen, and its examples run."""

import re
from pathlib import Path

import gymnasium
import pytest

import cluster_env
from cluster_env.envs import environment_ids
from cluster_env.objectives import OBJECTIVES
from cluster_env.worlds.deeprm.heuristics import HEURISTICS
from cluster_env.worlds.deeprm.observations import MASKS, OBSERVATIONS
from cluster_env.worlds.deeprm.rules import RULES
from tests.shown_outputs import shown_outputs

ROOT = Path(cluster_env.__file__).parent.parent
README = (ROOT / "cluster_env" / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
LIBRARIES = ("sb3_contrib", "ray")


def needs(library: str, example: str) -> bool:
    return f"from {library}" in example


@pytest.mark.parametrize(
    "names",
    [
        environment_ids(),
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
    own = [text for text in EXAMPLES if not any(needs(name, text) for name in LIBRARIES)]
    assert len(own) >= 4
    names: dict[str, object] = {}
    for example in own:
        exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "mean slowdown" in printed
    for line in shown_outputs(README):
        assert line in printed


def run(library: str, shorter: dict[str, str]) -> dict[str, object]:
    """Runs the example of a library, with a shorter training, and returns its names."""
    [example] = [text for text in EXAMPLES if needs(library, text)]
    for long, short in shorter.items():
        assert long in example
        example = example.replace(long, short)
    names: dict[str, object] = {"gymnasium": gymnasium}
    exec(compile(example, "README.md", "exec"), names)
    return names


def test_the_example_of_sb3_contrib_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sb3_contrib")
    run("sb3_contrib", {"learn(12_000)": "learn(1_024)"})
    assert re.search(r"mean slowdown \d", capsys.readouterr().out)


@pytest.mark.integration
def test_the_example_of_rllib_runs(local_ray: None, capsys: pytest.CaptureFixture[str]) -> None:
    """RLlib uses Ray as it finds it, and starts it where there is none."""
    few = {"range(10)": "range(1)", "PPOConfig()": "PPOConfig().training(num_epochs=2)"}
    run("ray", few)["algorithm"].stop()
    assert re.search(r"mean return -\d", capsys.readouterr().out)
