"""Sentences of Markdown pages, to measure how long they are.

python -m tests.sentences [PAGE ...]       words, sentences, median, share above 30 words
python -m tests.sentences --draw 126 --seed 1 [PAGE ...]    sentences drawn at random
"""

import argparse
import random
import re
import subprocess
from pathlib import Path
from statistics import median

REPOSITORY = Path(__file__).parents[1]
LONG = 30
"""Words of a sentence that few readers take in at once."""

_NO_PROSE = re.compile(r"^(?: {4,}|\t|\||#|!\[|<|\[[^\]]+\]:|-{3,}$)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) +")
_END = re.compile(r"(?<=[.!?])[)\"*_`]*\s+(?=[A-Z`*_\[(\"\d-])")
_SHORTHAND = re.compile(r"\b(e\.g|i\.e|al|vs|cf|Fig|Sec|Eq|No|pp?)\.")


def pages() -> list[Path]:
    """All pages of the repository but the changelog."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [REPOSITORY / name for name in listed if name != "CHANGELOG.md"]


def sentences(text: str) -> list[str]:
    """The sentences of a page, without code, tables, headings and links' addresses.

    An item of a list is a paragraph of its own. A paragraph that ends with a colon ends there.
    """
    paragraphs: list[list[str]] = [[]]
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            paragraphs.append([])
        elif _ITEM.match(line) and not fenced:
            paragraphs.append([_ITEM.sub("", line)])
        elif line.startswith("  ") and paragraphs[-1] and not fenced:  # an item goes on
            paragraphs[-1].append(line.strip())
        elif fenced or not line.strip() or _NO_PROSE.match(line):
            paragraphs.append([])
        else:
            paragraphs[-1].append(line.strip())
    found = []
    for lines in filter(None, paragraphs):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(lines))
        plain = _SHORTHAND.sub(r"\1", plain)
        found += [part.strip() for part in _END.split(plain) if part.strip()]
    return found


def num_words(sentence: str) -> int:
    """Words of a sentence; code in backticks is one."""
    return len([word for word in re.sub(r"`[^`]*`", "code", sentence).split() if word != "|"])


def main() -> None:
    """Prints a line for each page, or sentences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    texts = {path: path.read_text() for path in given.pages or pages()}
    found = {path: sentences(text) for path, text in texts.items()}
    if given.draw:
        every = [(path, one) for path in sorted(found) for one in found[path]]
        for path, one in random.Random(given.seed).sample(every, given.draw):
            print(f"{path.name}: {one}")
        return
    for path, some in found.items():
        lengths = [num_words(one) for one in some] or [0]
        above = sum(length > LONG for length in lengths) / len(lengths)
        words = len(texts[path].split())
        print(
            f"{words:6d} words {len(some):4d} sentences median {median(lengths):4.0f} "
            f"above {LONG}: {above:5.1%}  {path}"
        )


if __name__ == "__main__":
    main()
