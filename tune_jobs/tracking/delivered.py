"""How far a spool was delivered, for each store it was sent to."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rllib_configs.secrets import hide_secrets
from tune_jobs.terminal.files import replacing
from tune_jobs.tracking.places import database_beside
from tune_jobs.tracking.spool import Record

DELIVERED_FILE = "delivered.json"
REFUSED_FILE = "refused.jsonl"
LOCK_FILE = "lock"


@dataclass
class Delivered:
    """What one store already has of a spool.

    Attributes:
        offset: Bytes of the spool that were delivered; the next record begins there.
        mark: Tells whether they are still the same, see `Spool.mark`; empty if nobody knows.
        has_more: Whether the store may have points that the spool has lost.
        runs: Run ids of the store by our own run keys, in the order in which the runs started.
        orphans: Keys of the parents that the store did not know yet, by the key of the child.
    """

    offset: int = 0
    mark: str = ""
    has_more: bool = False
    runs: dict[str, str] = field(default_factory=dict)
    orphans: dict[str, str] = field(default_factory=dict)


class DeliveredFile:
    """The file ``delivered.json`` of a tracking folder, replaced as a whole at each change."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / DELIVERED_FILE

    def load(self, uri: str) -> Delivered:
        """What the store at ``uri`` has; an unreadable file counts as nothing delivered.

        Beginning again is harmless: see `Delivery`.
        """
        stores = self._stores()
        stored = stores.get(self._name(uri), stores.get(hide_secrets(uri), {}))
        try:
            return Delivered(
                int(stored["offset"]),
                str(stored.get("mark", "")),
                bool(stored.get("has_more", False)),
                dict(stored["runs"]),
                dict(stored["orphans"]),
            )
        except (KeyError, TypeError, ValueError):
            return Delivered()

    def save(self, uri: str, delivered: Delivered) -> None:
        """Writes atomically: a crash leaves the old file or the new one."""
        stores = self._stores()
        stores[self._name(uri)] = asdict(delivered)
        with replacing(self._path) as aside:
            aside.write_text(json.dumps({"stores": stores}, indent=1))

    def _name(self, uri: str) -> str:
        """Of a store in the file; a database's still holds when both were moved together."""
        beside = database_beside(self._directory.parent, uri)
        return hide_secrets(uri) if beside is None else f"beside:{beside}"

    def _stores(self) -> dict[str, dict]:
        try:
            stores = json.loads(self._path.read_text())["stores"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return stores if isinstance(stores, dict) else {}

    def add_refused(self, refused: list[Record]) -> None:
        """Keeps what a store refused, each with the reason, for a human to look at."""
        if refused:
            with (self._directory / REFUSED_FILE).open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in refused)
