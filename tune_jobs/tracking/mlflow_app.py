"""MLflow's server for a network: clients may not choose where on its machine it writes and reads.

MLflow lets a client name the folder of an experiment's artifacts, and then stores and serves files
there for whoever reaches its port: any folder of the server's user, and any file, keys and
passwords too. Here artifacts lie where the server was told to put them, and a request that names
another place is refused. ``mlflow server --app-name metasched`` runs it.
"""

import json
from typing import Any

from flask import Response, request
from mlflow.server import app as pages
from mlflow.server.fastapi_app import app

__all__ = ["app"]

_REFUSED = (
    "this server chooses where artifacts lie: create the experiment without an artifact location"
)


@pages.before_request
def refuse_places() -> Response | None:
    """Answers 403 to a request that names a place for artifacts; others go on to MLflow."""
    try:
        content: Any = json.loads(request.get_data())
        while isinstance(content, str):  # old clients send JSON as a string of JSON
            content = json.loads(content)
    except ValueError:
        return None
    # In any of the spellings that MLflow takes.
    if not isinstance(content, dict) or not any(
        value and name.replace("_", "").lower() in ("artifactlocation", "defaultartifactroot")
        for name, value in content.items()
    ):
        return None
    answer = {"error_code": "PERMISSION_DENIED", "message": _REFUSED}
    return Response(json.dumps(answer), status=403, mimetype="application/json")
