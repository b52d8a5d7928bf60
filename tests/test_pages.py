"""Pages can be read once: short sentences, few words, narrow tables."""

import re
from pathlib import Path
from statistics import median

import pytest

from tests.sentences import LONG, REPOSITORY, num_words, pages, sentences

MOST_WORDS, MOST_WORDS_OF_A_PAGE, MOST_COLUMNS = 31_000, 3_500, 8
MEDIAN, SHARE_OF_LONG = 18, 0.03
PAGES = pages()
GONE = re.compile(
    r"\b(too dear|dearer|(?<!-)told|in pairs|holds? 0|bit for bit|comes? trained|kept after|haste|"
    r"believed|somebody|whoever|one too many|not to be told from|accrued)\b",
    re.IGNORECASE,
)
"""Private words for which this field has its own."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_has_short_sentences_and_narrow_tables(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= MOST_WORDS_OF_A_PAGE
    assert median(map(num_words, sentences(text))) <= MEDIAN
    rows = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.sub(r"`[^`]*`|\\\|", "", row).strip("| ").split("|")) for row in rows]
    assert max(widths, default=0) <= MOST_COLUMNS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_has_the_words_of_the_field(page: Path) -> None:
    found = [one for one in sentences(page.read_text(encoding="utf-8")) if GONE.search(one)]
    assert not [one for one in found if GONE.search(re.sub(r"`[^`]*`", "", one))]


def test_all_pages_together_have_few_words_and_few_long_sentences() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(text.split()) for text in texts) <= MOST_WORDS
    lengths = [num_words(sentence) for text in texts for sentence in sentences(text)]
    assert sum(length > LONG for length in lengths) <= SHARE_OF_LONG * len(lengths)


def test_sentences_are_found_in_prose_alone() -> None:
    text = """# A heading. With a stop.

One sentence here; a `code with words` counts once. A second one,
see [the page](page.md). Two, e.g. this one, are three in all.

    code. That nobody reads.

- An item goes on
  in its second line. It has two.
- Another

| a | table |
"""
    found = sentences(text)
    assert found == [
        "One sentence here; a `code with words` counts once.",
        "A second one, see the page.",
        "Two, e.g this one, are three in all.",
        "An item goes on in its second line.",
        "It has two.",
        "Another",
    ]
    assert num_words(found[0]) == 7
