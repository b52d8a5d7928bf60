"""No module imports itself by way of others, not even for types or inside a function.

import-linter compares packages that stand beside each other, which leaves out circles of a package
and its own modules.
"""

import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

grimp = pytest.importorskip("grimp", reason="comes with import-linter, which the extra dev has")

PACKAGES = ("cluster_env", "rllib_configs", "meta", "tune_jobs", "metasched")


def circle(*packages: str) -> list[str]:
    """Modules each of which imports the one before it, the first at both ends; none is best."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    # What runs as a program may import itself, to be there under its own name as well.
    imports = {
        name: graph.find_modules_directly_imported_by(name) - {name} for name in graph.modules
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_is_in_a_circle() -> None:
    assert circle(*PACKAGES) == []


@pytest.mark.parametrize(
    "line",
    [
        "from made_up_package import first",
        "def late():\n    import made_up_package",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import made_up_package",
    ],
)
def test_a_package_and_its_own_module_are_a_circle(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "made_up_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from made_up_package.second import other\nfirst = 1\n")
    (folder / "second.py").write_text(f"{line}\nother = 2\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert set(circle("made_up_package")) == {"made_up_package", "made_up_package.second"}
