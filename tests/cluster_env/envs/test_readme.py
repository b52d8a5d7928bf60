"""The package's README names everything that can be chosen, and its examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cluster_env
from cluster_env.envs import environment_ids
from cluster_env.objectives import OBJECTIVES
from cluster_env.worlds.deeprm.heuristics import HEURISTICS
from cluster_env.worlds.deeprm.observations import MASKS, OBSERVATIONS
from cluster_env.worlds.deeprm.rules import RULES

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
    assert "mean slowdown" in capsys.readouterr().out


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "long", "short", "said"),
    [
        ("sb3_contrib", "learn(12_000)", "learn(1_024)", r"mean slowdown \d"),
        ("ray", "range(10)", "range(1)", r"mean return -\d"),
    ],
)
def test_examples_with_other_libraries_run(
    library: str, long: str, short: str, said: str, tmp_path: Path
) -> None:
    """In a process of their own, because Ray stays in one; with a shorter training."""
    pytest.importorskip(library)
    [example] = [text for text in EXAMPLES if needs(library, text)]
    assert long in example
    script = tmp_path / "example.py"
    script.write_text(f"import gymnasium\nimport cluster_env\n{example.replace(long, short)}")
    quiet = {"RAY_AUTH_MODE": "disabled", "RAY_ENABLE_AUTO_CONNECT": "1"}
    found = subprocess.run(
        [sys.executable, script],
        env={**os.environ, **quiet, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert re.search(said, found.stdout), found.stdout
