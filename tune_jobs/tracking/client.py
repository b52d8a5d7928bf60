"""MLflow's client, with what a store sends in MLflow's terms."""

from collections.abc import Iterable

from mlflow import MlflowClient
from mlflow.entities import LoggedModelOutput, Metric, Param, RunTag

from tune_jobs.tracking.values import Point


class Client(MlflowClient):
    """A client that takes what it sends as tuples; each call sends all at once."""

    def add_points(self, run_id: str, points: Iterable[Point]) -> None:
        """Adds points to the curves of a run."""
        self.log_batch(run_id, metrics=[Metric(*point) for point in points])

    def add_params(self, run_id: str, params: Iterable[tuple[str, str]]) -> None:
        """Adds parameters of a run that it does not have yet."""
        self.log_batch(run_id, params=[Param(*param) for param in params])

    def set_tags(self, run_id: str, tags: Iterable[tuple[str, str]]) -> None:
        """Sets tags of a run."""
        self.log_batch(run_id, tags=[RunTag(*tag) for tag in tags])

    def add_model(self, run_id: str, model_id: str) -> None:
        """Makes a model an output of a run."""
        self.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])
