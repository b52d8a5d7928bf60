"""Where a run is recorded: in the local store beside it, of which a server gets a copy."""

import os
import re
from pathlib import Path

from rllib_configs.config.secrets import hide_secrets

STORE_FILE = "mlflow.db"
ARTIFACT_FOLDER = "mlartifacts"


def tracking_dir(run_dir: str | os.PathLike[str]) -> Path:
    """Folder of a run directory that says which run of the local store it is."""
    return Path(run_dir).absolute() / "tracking"


def local_store(runs_dir: str | os.PathLike[str]) -> Path:
    """Database file that the runs below a folder share."""
    return Path(runs_dir).absolute() / STORE_FILE


def local_uri(runs_dir: str | os.PathLike[str]) -> str:
    """MLflow's name for `local_store`."""
    return f"sqlite:///{local_store(runs_dir)}"


def server_uri(home: Path, uri: str | None = None) -> str | None:
    """The server, or the other database, that gets a copy of what is recorded.

    No file of a run directory has a say in this: it may be somebody else's, and credentials from
    the environment go wherever this points to.

    Args:
        home: folder of the local store.
        uri: what the user has named; by default the environment's MLFLOW_TRACKING_URI. A relative
            SQLite path is made absolute. The password that MLFLOW_TRACKING_URI holds is put back
            where ``uri`` is the same address without it.

    Returns:
        None if there is none beside the local store.
    """
    named = os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri or uri == hide_secrets(named):
        uri = named
    if relative := re.fullmatch(r"sqlite:///([^/].*)", uri):
        uri = f"sqlite:///{Path(relative[1]).absolute()}"
    database = database_of(uri)
    is_local = database is not None and database.resolve() == local_store(home).resolve()
    return None if is_local else uri or None


def database_of(uri: str) -> Path | None:
    """File of a store that is a SQLite database."""
    found = re.fullmatch(r"sqlite:///(.+)", uri)
    return Path(found[1]) if found else None
