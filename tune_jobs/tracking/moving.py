"""A folder of runs that was moved: MLflow's database holds absolute addresses of artifacts."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

from cluster_env.core.errors import InputError, printable
from tune_jobs.tracking.places import ARTIFACT_FOLDER

# MLflow offers no call that changes an address.
_COLUMNS = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)


_WITH_TRIGGERS = "secrets"


def require_plain(database: Path) -> None:
    """Makes sure that nothing but MLflow's own happens when something is recorded or read.

    A trigger or a view of a stranger's would do what it likes, and might never end. MLflow has
    triggers of its own on a table that nothing here writes to.

    Raises:
        InputError: if there is another trigger, or a view.
    """
    with closing(sqlite3.connect(database, timeout=30.0)) as connection:
        found = connection.execute(
            "SELECT type, name FROM sqlite_master "
            "WHERE type IN ('trigger', 'view') AND tbl_name != ?",
            (_WITH_TRIGGERS,),
        ).fetchone()
    if found:
        raise InputError(
            f"{database} has a {found[0]} ({printable(found[1])}), which is none of MLflow's"
        )


def mend_addresses(database: Path) -> list[Path]:
    """Has a local store, before which no server stands, look for its artifacts where they lie now.

    Only addresses in a folder ``mlartifacts`` that is gone, or of which this is a copy, change.

    Returns:
        Folders that the store was in before; empty if all addresses hold.
    """
    home = database.absolute().parent
    with closing(sqlite3.connect(database, timeout=30.0)) as connection:
        if not _has(connection, "experiments", "artifact_location"):
            return []
        found = connection.execute("SELECT artifact_location FROM experiments").fetchall()
        old = {root for (address,) in found if (root := _old_root(address, home / ARTIFACT_FOLDER))}
        new = (home / ARTIFACT_FOLDER).as_uri()
        with connection:  # all of it or nothing
            for table, column in _COLUMNS:
                if _has(connection, table, column):
                    for root in old:
                        connection.execute(
                            f"UPDATE {table} SET {column} = ? || substr({column}, ?) "
                            f"WHERE substr({column}, 1, ?) = ?",
                            (new, len(root) + 1, len(root) + 1, f"{root}/"),
                        )
    return sorted(Path(_plain(root)).parent for root in old)


def _old_root(address: str | None, artifacts: Path) -> str | None:
    """The folder of artifacts that an address is in, if it should be in this one."""
    root, mark, name = (address or "").rpartition(f"/{ARTIFACT_FOLDER}/")
    root += f"/{ARTIFACT_FOLDER}"
    if not mark or not root.startswith("file:///") or root == artifacts.as_uri():
        return None
    gone = not Path(_plain(root)).is_dir()
    return root if gone or (artifacts / _plain(name)).is_dir() else None


def _has(connection: sqlite3.Connection, table: str, column: str) -> bool:
    """Whether this version of MLflow has a column."""
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return column in [row[1] for row in columns]


def _plain(address: str) -> str:
    return unquote(address.removeprefix("file://"))
