"""Keeping passwords, tokens and keys out of what is written or shown.

Secrets come from the environment. Where one comes along in a text all the same, in an address, in a
command line or in the message of a library, it is replaced by ``***`` before the text is written.
"""

import os
import re
from collections.abc import Mapping

HIDDEN = "***"
SHORTEST = 6
"""Characters of a variable's value from which on it is looked for in texts."""

_WORD = r"(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|credentials?)"
_VARIABLE = re.compile(rf"{_WORD}|(?:^|_)auth(?:_|$)", re.IGNORECASE)
_NO_SECRET = re.compile(r"_(?:MODE|PATH|FILE|DIR|SOCK)$")
_ADDRESS = re.compile(r"(?<=//)[^/\s@]*(?:@[^/\s@]*)*@")
_VALUE = r"'[^']*'|\"[^\"]*\"|[^\s&;,'\"]+"
_PAIR = re.compile(rf"([\w.-]*{_WORD}[\w-]*\s*[=:]\s*)(?:{_VALUE})", re.IGNORECASE)
_OPTION = re.compile(rf"(--[\w-]*{_WORD}[\w-]*\s+)(?:{_VALUE})", re.IGNORECASE)


def hide_secrets(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text without secrets.

    Hidden are user names and passwords in addresses (``postgresql://user:password@host``), values
    after ``password=``, ``token=``, ``--token`` and the like, and the values of variables of the
    environment whose names say that they are secret (``AWS_SECRET_ACCESS_KEY``).

    Args:
        text: what is about to be written or shown.
        environment: by default that of this process.
    """
    for value in _values(os.environ if environment is None else environment):
        text = text.replace(value, HIDDEN)
    text = _ADDRESS.sub("", text)
    return _PAIR.sub(rf"\g<1>{HIDDEN}", _OPTION.sub(rf"\g<1>{HIDDEN}", text))


def holds_secret(uri: str) -> bool:
    """Whether an address has a password or a token in it."""
    return bool(_ADDRESS.search(uri)) or _PAIR.search(uri) is not None


def _values(environment: Mapping[str, str]) -> list[str]:
    """Secret values, longest first, so that none hides a part of another."""
    found = {
        value
        for name, value in environment.items()
        if len(value) >= SHORTEST and _VARIABLE.search(name) and not _NO_SECRET.search(name)
    }
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):
        if match := re.search(r"//[^/\s@:]*:([^/\s]+)@", environment.get(name, "")):
            found.add(match[1])
    return sorted((value for value in found if value), key=len, reverse=True)
