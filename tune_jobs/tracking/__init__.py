"""Experiment tracking that a training run cannot feel: the only place that imports MLflow.

Training code calls a `Tracker`. Its methods append one JSON line to a spool in the run directory
and return; a thread carries the spool into MLflow. With the server away, slow or wrong, records
wait on disk, and ``metasched sync RUN_DIR`` sends them later. Nothing here raises into training.

    caller -> Tracker -> Writer -> Spool (spool.jsonl)
                                        |
                           DeliveryThread -> Delivery -> Store (MLflow)
                                                |
                                             Delivered (delivered.json)
"""

from tune_jobs.tracking.delivery import Busy, Delivery
from tune_jobs.tracking.places import ARTIFACT_FOLDER, local_store, local_uri, recorded_store
from tune_jobs.tracking.spool import Spool, tracking_dir
from tune_jobs.tracking.store import StoreAway
from tune_jobs.tracking.tracker import AnyTracker, NullTracker, RunStatus, Tracker
from tune_jobs.tracking.writer import Report

__all__ = [
    "ARTIFACT_FOLDER",
    "AnyTracker",
    "Busy",
    "Delivery",
    "NullTracker",
    "Report",
    "RunStatus",
    "Spool",
    "StoreAway",
    "Tracker",
    "local_store",
    "local_uri",
    "recorded_store",
    "tracking_dir",
]
