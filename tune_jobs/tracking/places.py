"""Where the records of a run directory go: a server, or a database that lies near it."""

import os
import re
from pathlib import Path

from rllib_configs.secrets import hide_secrets
from tune_jobs.tracking.spool import Spool, tracking_dir

STORE_FILE = "mlflow.db"
ARTIFACT_FOLDER = "mlartifacts"


def local_store(runs_dir: str | os.PathLike[str]) -> Path:
    """Database file that the runs below a folder share when no server was named."""
    return Path(runs_dir).absolute() / STORE_FILE


def local_uri(runs_dir: str | os.PathLike[str]) -> str:
    """MLflow's name for `local_store`."""
    return f"sqlite:///{local_store(runs_dir)}"


def tracking_uri(run_dir: str | os.PathLike[str], uri: str | None) -> str:
    """The store meant by ``uri``, None being the local one next to the run directory.

    A relative SQLite path is made absolute, so that it means the same file tomorrow. Passwords are
    not written down; those in MLFLOW_TRACKING_URI are put back if all else is the same.
    """
    if uri is None:
        return local_uri(Path(run_dir).absolute().parent)
    named = os.environ.get("MLFLOW_TRACKING_URI", "")
    if named != uri == hide_secrets(named):
        return named
    relative = re.fullmatch(r"sqlite:///([^/].*)", uri)
    return f"sqlite:///{Path(relative[1]).absolute()}" if relative else uri


def database_of(uri: str | None) -> Path | None:
    """File of a store that is a SQLite database."""
    found = re.fullmatch(r"sqlite:///(.+)", uri or "")
    return Path(found[1]) if found else None


def database_beside(run_dir: str | os.PathLike[str], uri: str | None) -> str | None:
    """Path from a run directory to the database of its records, which outlasts a common move."""
    database = database_of(tracking_uri(run_dir, uri))
    return None if database is None else os.path.relpath(database, Path(run_dir).absolute())


def recorded_store(run_dir: str | os.PathLike[str]) -> str | None:
    """The store that the records of a run directory went to last, where it lies today.

    Returns:
        None for the local one next to the run directory, and if nothing was recorded.
    """
    opened = Spool(tracking_dir(run_dir)).of_kind("open")
    if not opened:
        return None
    uri, beside = opened[-1]["uri"], opened[-1].get("beside")
    database = database_of(uri)
    if database is None or (beside is None and database.exists()):
        return uri
    near = Path(os.path.normpath(Path(run_dir).absolute() / (beside or f"../{STORE_FILE}")))
    return f"sqlite:///{near}" if near.is_file() else uri
