"""Counts lines, functions and words of each package: ``python -m tests.counts``.

A number is a report, not a limit. The words of all are those of the pages outside, too.
"""

import ast
import io
import math
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAM = ("cluster_env", "rllib_configs", "meta", "tune_jobs")
LONG, MANY = 60, 8
"""Lines of a function, and its parameters, above which it is counted by itself."""
WORDS = "words on pages"
_MADE = {"runs", "build", "dist"}  # by commands, at the root
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Counts:
    """What was counted in some files.

    Attributes:
        sums: what adds up, by its words in the table.
        lengths: lines of each function, without decorators.
        classes: how often each name of a class is defined.
    """

    sums: Counter[str] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, others: Iterable["Counts"]) -> "Counts":
        """Takes in what was counted in others, and returns itself."""
        for other in others:
            self.sums.update(other.sums)
            self.lengths += other.lengths
            self.classes.update(other.classes)
        return self

    def rows(self) -> dict[str, float]:
        """What the table says, by its words."""
        ordered = sorted(self.lengths) or [0]
        rows: dict[str, float] = {what: n for what, n in self.sums.items() if what != WORDS}
        rows["median length of functions"] = statistics.median(ordered)
        rows["90th percentile of it"] = ordered[math.ceil(0.9 * len(ordered)) - 1]
        rows["class names defined twice or more"] = sum(n > 1 for n in self.classes.values())
        return rows | {WORDS: self.sums[WORDS]}


def size_of(node: ast.stmt) -> int:
    """Lines that a statement takes, without decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def counts_of(text: str) -> Counts:
    """Counts of a file of Python; an import counts once for each function that it is inside of."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, _Function)]
    documented = [node for node in nodes if isinstance(node, _Function | ast.ClassDef | ast.Module)]
    of_docstrings = sum(size_of(node.body[0]) for node in documented if ast.get_docstring(node))
    inside = [part for node in functions for part in ast.walk(node)]
    arguments = [[*a.posonlyargs, *a.args, *a.kwonlyargs] for a in (f.args for f in functions)]
    named = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    at_top = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    private = [node for node in at_top if node.name.startswith("_") and node.name[:2] != "__"]
    single = [node for node in private if named[node.name] <= 1]
    code, comments = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    sums = {
        "files": 1,
        "lines": text.count("\n"),
        "code lines": len(code) - of_docstrings,
        "docstring lines": of_docstrings,
        "comment-only lines": len(comments - code),
        "functions": len(functions),
        f"functions over {LONG} lines": sum(size_of(node) > LONG for node in functions),
        f"functions with more than {MANY} parameters": sum(len(a) > MANY for a in arguments),
        "imports inside functions": sum(isinstance(p, ast.Import | ast.ImportFrom) for p in inside),
        "private functions with one caller": len(single),
        "lines of these": sum(map(size_of, single)),
    }
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return Counts(Counter(sums), [size_of(node) for node in functions], classes)


def words_on(pages: Iterable[Path]) -> Counts:
    """Words on Markdown pages, without the changelog."""
    texts = [page.read_text("utf-8") for page in pages if page.name != "CHANGELOG.md"]
    return Counts(Counter({WORDS: sum(len(text.split()) for text in texts)}))


def table(root: Path) -> str:
    """All counts of a checkout, a column for each package."""
    of: dict[str, Counts] = {}
    for name in (*PROGRAM, "tests"):
        files = [counts_of(path.read_text("utf-8")) for path in (root / name).rglob("*.py")]
        of[name] = Counts().add([*files, words_on((root / name).rglob("*.md"))])
    elsewhere = [path for path in root.iterdir() if path.name not in _MADE | of.keys()]
    folders = [path for path in elsewhere if path.is_dir() and not path.name.startswith(".")]
    pages = [*root.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    program = Counts().add(of[name] for name in PROGRAM)
    every = Counts().add([program, of["tests"], words_on(pages)])
    columns = {**of, "program": program, "all": every}
    rows = {name: columns[name].rows() for name in (*PROGRAM, "program", "tests", "all")}
    lines = [f"{'':38}" + "".join(f"{name:>14}" for name in rows)]
    for what in rows["all"]:
        told = [f"{numbers.get(what, 0):,.9g}" for numbers in rows.values()]
        lines.append(f"{what:38}" + "".join(f"{number:>14}" for number in told))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(REPOSITORY))
