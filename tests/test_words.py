"""What belongs to one world stands in that world: commands and meta-learning do not name it."""

import ast
import re
from collections.abc import Iterator

from tests.conftest import REPOSITORY

HEURISTICS = re.compile(r"\b(sjf|tetris|packer)\b")
SETTINGS = re.compile(r"\b(deeprm_mlp|load(?! average)|loads|load_used|windows?|rules)\b")
NAMES = re.compile(r"^_?(sjf|tetris|packer|rules|window)$|deeprm", re.IGNORECASE)
EXAMPLES = re.compile(r"``.*?``|`.*?`|>>>[^\n]*|for instance .*?;|Examples:.*", re.DOTALL)
OF_PAPERS = {  # what papers and references measured; a preset
    "figures",
    "recipes",
    "benchmarks",
    "demo.py",
}
OF_LOGS = {  # the load of a log, in whichever world
    "changes.py",
    "description.py",
    "logs.py",
    "site_report.py",
    "whatif.py",
}
OF_WORLDS = {"gymnasium_ids.py"}  # the options of all environments, which a test compares
MODULES = [
    path
    for package in ("tune_jobs", "meta")
    for path in sorted((REPOSITORY / package).rglob("*.py"))
    if not (OF_PAPERS | OF_LOGS | OF_WORLDS) & set(path.relative_to(REPOSITORY).parts)
]


def names(tree: ast.AST) -> Iterator[str]:
    """What Python calls things: variables, parameters, functions, classes."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if isinstance(name := getattr(node, field, None), str):
                yield name


def documents(tree: ast.AST) -> dict[ast.Constant, str]:
    """Docstrings, also those of attributes, without what is quoted in them."""
    return {
        node.value: EXAMPLES.sub("", node.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def texts(tree: ast.AST) -> Iterator[str]:
    """What the program says and looks up."""
    left_out = documents(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.value


def suspects(source: str) -> list[str]:
    tree = ast.parse(source)
    return [
        *(name for name in names(tree) if NAMES.search(name)),
        *(text for text in texts(tree) if SETTINGS.search(text) or HEURISTICS.search(text)),
        *(text for text in documents(tree).values() if HEURISTICS.search(text)),
    ]


def test_a_module_names_nothing_of_deeprms_world() -> None:
    found = {path: suspects(path.read_text(encoding="utf-8")) for path in MODULES}
    assert not {path: names for path, names in found.items() if names}


def test_the_search_finds_what_it_is_for() -> None:
    assert suspects('rules = row["load_used"]') == ["rules", "load_used"]
    assert suspects('"""Beats sjf, as ``tetris``."""') == ["Beats sjf, as ."]
    assert suspects("load_deeprm_policy(run)") == ["load_deeprm_policy"]
    assert not suspects('"""As ``sjf``."""\nload(jobset.window)\n"the load average"')
