"""What pages show as the output of their Python examples."""

import re

_BELOW = re.compile(r"^```\n\n((?: {4}.+\n)+)", re.MULTILINE)


def shown_outputs(text: str) -> list[str]:
    """Lines of the indented blocks that directly follow an example."""
    return [line.strip() for block in _BELOW.findall(text) for line in block.splitlines()]
