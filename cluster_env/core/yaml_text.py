"""YAML of strangers, read so that no text of it costs more than a moment, or says a thing twice."""

from collections.abc import Hashable
from typing import Any

import yaml

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 30
MAX_VALUES = 100_000
"""Values of a text, each alias counted as all that it stands for."""


class YAMLFault(ValueError):
    """A text that cannot be read; the message ends a sentence that names the text."""


def parse_yaml(text: str) -> Any:
    """Plain data of a YAML text; no tag in it can run code.

    Raises:
        YAMLFault: if it is not valid, has a key twice, or is larger or deeper than any config.
    """
    if len(text) > MAX_CHARACTERS:
        raise YAMLFault(f"is longer than {MAX_CHARACTERS:,} characters")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {}, 0)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise YAMLFault(
            f"is not valid YAML{_place(getattr(error, 'problem_mark', None))}"
        ) from None
    except RecursionError:  # in the parser, before anything could be counted
        raise _too_deep() from None
    except YAMLFault:
        raise
    except (ValueError, TypeError, OverflowError) as error:  # 2020-13-45, or 5,000 digits
        raise YAMLFault(f"holds what cannot be read: {error}") from None


def _count(node: yaml.Node, known: dict[int, int | None], depth: int) -> int:
    """How many values a node stands for.

    Args:
        node: of the text.
        known: the numbers of nodes that were counted, by identity; None of those under way.
        depth: tables and lists around it.

    Raises:
        YAMLFault: if there are too many, or too many inside each other, or a key is there twice.
    """
    if isinstance(node, yaml.ScalarNode):
        return 1
    if depth > MAX_DEPTH or known.get(id(node), 0) is None:  # an alias may stand for itself
        raise _too_deep()
    if (count := known.get(id(node))) is not None:
        return count
    known[id(node)] = None
    inner = node.value
    if isinstance(node, yaml.MappingNode):
        keys: set[Hashable] = set()  # YAML would take the last of equal ones silently
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    place = _place(key.start_mark)
                    raise YAMLFault(f"has the key '{key.value[:80]}' twice{place}")
                keys.add((key.tag, key.value))
        inner = [part for pair in node.value for part in pair]
    total = 1 + sum(_count(part, known, depth + 1) for part in inner)
    if total > MAX_VALUES:
        raise YAMLFault(f"holds more than {MAX_VALUES:,} values, as when aliases name aliases")
    known[id(node)] = total
    return total


def _place(mark: Any) -> str:
    return f" in line {mark.line + 1}" if mark else ""


def _too_deep() -> YAMLFault:
    return YAMLFault(f"has more than {MAX_DEPTH} tables and lists inside each other")
