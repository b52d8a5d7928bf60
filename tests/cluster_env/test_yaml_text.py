"""YAML of strangers: what a text may say, and that none costs more than a moment."""

import pytest

from cluster_env.core.yaml_text import MAX_CHARACTERS, MAX_DEPTH, YAMLFault, parse_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BOMB, "holds more than 100,000 values, as when aliases name aliases"),
        ("a: &a [*a]", "inside each other"),
        ("a: &a {b: *a}", "inside each other"),
        ("[" * 50_000, "inside each other"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "inside each other"),
        ("a: 1\nb: 2\na: 3\n", "has the key 'a' twice in line 3"),
        ("a: {b: 1, c: 2, b: 3}", "has the key 'b' twice in line 1"),
        ("x" * (MAX_CHARACTERS + 1), "is longer than 1,000,000 characters"),
        ("a: 2020-13-45", "holds what cannot be read: month must be in 1..12"),
        ("a: " + "9" * 5000, "holds what cannot be read: Exceeds the limit"),
        ("a: [1", "is not valid YAML in line 1"),
        ("{[1]: 2}", "is not valid YAML in line 1"),
        ("a: 1\n---\nb: 2", "is not valid YAML"),
        ("a: !!python/name:os.system ''", "is not valid YAML in line 1"),
        ("a: \0", "is not valid YAML"),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
def test_a_text_that_cannot_be_used_is_refused_in_a_few_words(text: str, sentence: str) -> None:
    with pytest.raises(YAMLFault) as caught:
        parse_yaml(text)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 200


def test_anchors_are_for_honest_people() -> None:
    text = "base: &base {lr: 1.0e-3, sizes: [1, 2]}\nmine: {<<: *base, lr: 2.0}\nagain: *base\n"
    base = {"lr": 1e-3, "sizes": [1, 2]}
    assert parse_yaml(text) == {"base": base, "mine": {**base, "lr": 2.0}, "again": base}
    assert parse_yaml("") is None
    depth = MAX_DEPTH + 1
    assert parse_yaml("[" * depth + "]" * depth) is not None
