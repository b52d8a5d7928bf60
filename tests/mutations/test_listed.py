"""The list of mutations stays true: each can still be made, and its test still exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.mutations import run as runner
from tests.mutations.listed import REPOSITORY, Mutation, mutations

NOT_ORDINARY = {"slow", "service"}


@cache
def text_of(file: str) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


@cache
def syntax_of(file: str) -> str:
    return ast.dump(ast.parse(text_of(file)))


@cache
def marks_of(file: str) -> dict[str, set[str]]:
    """The marks of each test of a file, by its name with its class before it."""
    tree = ast.parse(text_of(file))
    found: dict[str, set[str]] = {}

    def marks(node: ast.AST) -> set[str]:
        return {
            part.attr
            for part in ast.walk(node)
            if isinstance(part, ast.Attribute) and ast.unparse(part.value).endswith("mark")
        }

    def visit(body: list[ast.stmt], prefix: str, inherited: set[str]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                own = inherited.union(*(marks(each) for each in node.decorator_list))
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}::", own)
                else:
                    found[prefix + node.name] = own

    everywhere = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    visit(tree.body, "", set().union(*(marks(each) for each in everywhere)))
    return found


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len(mutations()) >= 200
    assert len({one.fault for one in mutations()}) == len(mutations())
    assert len({(one.file, one.before, one.after) for one in mutations()}) == len(mutations())


@pytest.mark.parametrize(
    "room",
    ["adapting", "api", "benchmarks", "figures", "measuring", "replaying", "runs", "tables"],
)
def test_what_users_touch_has_faults(room: str) -> None:
    assert sum(one.file.startswith(f"tune_jobs/{room}/") for one in mutations()) >= 5


def test_a_mutation_can_be_made_and_its_test_is_an_ordinary_one() -> None:
    for mutation in mutations():
        assert not mutation.file.startswith("tests/")
        changed = mutation.mutated(text_of(mutation.file))
        assert ast.dump(ast.parse(changed)) != syntax_of(mutation.file), mutation.fault
        file, _, name = mutation.test.partition("::")
        tests = marks_of(file)
        name = name.partition("[")[0]
        assert name in tests, f"{mutation.test} is no test"
        assert not tests[name] & NOT_ORDINARY, mutation.test


def test_a_text_that_is_gone_or_stands_twice_is_named() -> None:
    mutation = Mutation("a fault", "a.py", "x = 1", "x = 2", "tests/test_a.py::test_a")
    assert mutation.mutated("y = 0\nx = 1\n") == "y = 0\nx = 2\n"
    for text, count in (("", 0), ("x = 1\nx = 1\n", 2)):
        with pytest.raises(ValueError, match=f"a fault: .* stands {count} times in a.py"):
            mutation.mutated(text)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one module, and a test of half of it."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "sums.py").write_text("def add(a, b):\n    return a + b\n\n\nLIMIT = 3\n")
    (root / "test_sums.py").write_text(
        "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    (root / "runs").mkdir()
    monkeypatch.setattr(runner, "REPOSITORY", root)
    monkeypatch.setattr(runner, "PRELOADED", ())
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # saves most of the time
    return root


def fault(name: str, before: str, after: str) -> Mutation:
    return Mutation(name, "sums.py", before, after, "test_sums.py::test_add")


def test_faults_are_told_apart_by_their_tests_and_leave_nothing(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (tiny / "sums.py").read_text()
    seen, hidden = fault("a difference", "a + b", "a - b"), fault("a limit", "= 3", "= 4")
    broken = fault("no import", "LIMIT = 3", "raise ValueError")
    assert runner.run([seen, hidden, broken], 1) == 1
    shown = capsys.readouterr().out
    for line in (
        r"1 tests pass without a fault, kernels compiled",
        r"killed .*sums.py: a difference",
        r"survived .*sums.py: a limit",
        r"untried .*sums.py: no import",
        r"1 of 3 faults were noticed, 1 survived, 1 could not be tried",
        r"survived: a limit\n    test_sums.py::test_add",
    ):
        assert re.search(line, shown), (line, shown)
    assert (tiny / "sums.py").read_text() == text
    assert runner.run([seen], 2) == 0


def test_only_what_is_made_at_the_root_is_left_out_of_a_copy(tiny: Path, tmp_path: Path) -> None:
    (tiny / "package" / "runs").mkdir(parents=True)
    with runner.Copies(tmp_path / "copies", 1).one() as copy:
        assert not (copy / "runs").exists()
        assert (copy / "package" / "runs").is_dir()


def test_a_test_that_fails_without_a_fault_tells_nothing(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny / "sums.py").write_text("def add(a, b):\n    return 0\n")
    assert runner.run([fault("a difference", "return 0", "return 1")], 1) == 2
    assert "must pass without a fault" in capsys.readouterr().out
