"""Experiment tracking that a training run cannot feel: the only place that imports MLflow.

Training code calls a `Tracker`. Its methods take a note and return; a thread writes what has
gathered into the local store, MLflow's SQLite database beside the run, which is never away.
Another thread copies that to a server, if there is one, and ``metasched sync RUN_DIR`` does so at
any time. Nothing here raises into training.

    caller -> Tracker -> Writer -> LocalStore (MLflow)
                                       |
                  CopyThread, sync -> Copy -> Store (MLflow)
"""

from tune_jobs.tracking.places import ARTIFACT_FOLDER, local_store, local_uri, tracking_dir
from tune_jobs.tracking.tracker import NullTracker, Report, RunStatus, Tracker

__all__ = [
    "ARTIFACT_FOLDER",
    "NullTracker",
    "Report",
    "RunStatus",
    "Tracker",
    "local_store",
    "local_uri",
    "tracking_dir",
]
