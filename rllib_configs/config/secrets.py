"""Keeping passwords, tokens and keys out of what is written or shown.

Secrets come from the environment. Where one comes along in a text all the same, in an address, in a
command line or in the message of a library, it is replaced by ``***`` before the text is written.
Where a text could be read either way, more is hidden rather than less.
"""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 6
"""Characters of a variable's value from which on it is looked for in texts."""

_WORD = (
    r"(?:password|passwd|pwd|secret|token|credentials?|connection[_-]?string|shared[_-]?access"
    r"|(?:api|access|account|private|encryption|signing)[_-]?key)"
)
_VARIABLE = re.compile(rf"{_WORD}|(?:^|_)auth(?:_|$)", re.IGNORECASE)
_NO_SECRET = re.compile(r"^(?:OLD)?PWD$|_(?:MODE|PATH|FILE|DIR|SOCK)$")

# A password may hold "/" and "@", which an address should have written as %2F and %40.
_ADDRESS = re.compile(r"(?<=//)(?:[^/\s@]*(?:@[^/\s@]*)*@|[^/\s@:]*:[^\s'\"<>]*@)")
_ADDRESS_PASSWORD = re.compile(r"//[^/\s@:]*:(\S+)@")

_QUOTE = r"\\?['\"]"
_QUOTED = r"\\\"(?:(?!\\\").)*\\\"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
_VALUE = rf"{_QUOTED}|[^\s&;,'\"]+"
_PAIR = re.compile(
    rf"((?<![\w.-])[\w.-]*{_WORD}[\w-]*(?:{_QUOTE})?\s*[=:]\s*)(?:{_VALUE})", re.IGNORECASE
)
_OPTION = re.compile(rf"(--[\w-]*{_WORD}[\w-]*\s+)(?:{_VALUE})", re.IGNORECASE)
_HEADER = re.compile(
    rf"(\b(?:authorization|set-cookie|cookie)(?:{_QUOTE})?\s*[=:]\s*)(?:{_QUOTED}|[^\r\n'\"]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s+)[\w.~+/=-]{6,}", re.IGNORECASE)
_BASIC = re.compile(r"(\bbasic\s+)([A-Za-z0-9+/_-]{4,}={0,2})", re.IGNORECASE)
_SIGNATURE = re.compile(r"([?&;][\w-]*sig(?:nature)?=)[^\s&;,'\"]+", re.IGNORECASE)


def hide_secrets(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text without secrets.

    Hidden are user names and passwords in addresses (``postgresql://user:password@host``), values
    after ``password=``, ``"token":``, ``AccountKey=``, ``--token`` and the like, what follows
    ``Authorization:``, ``Bearer`` and ``Basic``, signatures of signed addresses, and the values of
    variables of the environment whose names say that they are secret (``AWS_SECRET_ACCESS_KEY``).

    Args:
        text: what is about to be written or shown.
        environment: by default that of this process.
    """
    environment = os.environ if environment is None else environment
    values = {
        value
        for name, value in environment.items()
        if len(value) >= SHORTEST and _VARIABLE.search(name) and not _NO_SECRET.search(name)
    }
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"):
        if match := _ADDRESS_PASSWORD.search(environment.get(name, "")):
            values |= {match[1], unquote(match[1])}
    # The longest first, so that none hides a part of another.
    for value in sorted(filter(None, values), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    text = _ADDRESS.sub("", text)
    for pattern in (_HEADER, _BEARER, _SIGNATURE, _OPTION, _PAIR):
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return _BASIC.sub(_without_basic, text)


def holds_secret(uri: str) -> bool:
    """Whether an address has a password, a token or a signature in it."""
    return any(pattern.search(uri) for pattern in (_ADDRESS, _PAIR, _SIGNATURE))


def _without_basic(match: re.Match[str]) -> str:
    """Hides ``Basic`` and a word that is ``user:password`` in base64; other words are prose."""
    word = match[2].rstrip("=")
    try:
        decoded = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
    except (binascii.Error, ValueError):
        return match[0]
    return f"{match[1]}{HIDDEN}" if b":" in decoded else match[0]
