"""The Python examples of each page run one after the other, and print what the page shows."""

import re
from pathlib import Path

import pytest

from rllib_configs.config import extensions
from rllib_configs.config.registries import ALGORITHMS
from tests.conftest import REPOSITORY
from tests.shown_outputs import shown_outputs
from tests.tune_jobs.shown_commands import PAGES

EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
IN_TESTS_OF_THEIR_OWN = {
    "cluster_env/README.md",  # tests/cluster_env/envs/test_readme.py
    "meta/README.md",  # tests/meta/test_readme.py
    "tune_jobs/api/README.md",  # tests/tune_jobs/api/test_examples.py
}
EXAMPLES = {
    name: examples
    for path in PAGES
    if (name := path.relative_to(REPOSITORY).as_posix()) not in IN_TESTS_OF_THEIR_OWN
    and (examples := EXAMPLE.findall(path.read_text(encoding="utf-8")))
}


def test_pages_of_worlds_are_among_them() -> None:
    assert len(EXAMPLES) >= 3
    page = REPOSITORY / "cluster_env" / "worlds" / "panda" / "README.md"
    assert len(shown_outputs(page.read_text(encoding="utf-8"))) == 2


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    extensions.load_extensions()  # ours stay entered when the registry is put back
    monkeypatch.setattr(ALGORITHMS, "_things", dict(ALGORITHMS._things))
    names: dict[str, object] = {"__name__": "example"}
    for example in EXAMPLES[page]:
        exec(compile(example, page, "exec"), names)
    printed = capsys.readouterr().out
    for line in shown_outputs((REPOSITORY / page).read_text(encoding="utf-8")):
        assert line in printed
