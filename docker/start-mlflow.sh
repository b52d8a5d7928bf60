#!/bin/sh
# Starts the MLflow server and stays in the foreground. It asks nobody for a password: keep it on
# loopback or in a network of its own. Clients send artifacts to it and read them through it, and
# cannot choose another place for them (tune_jobs/tracking/mlflow_app.py).
#
#   MLFLOW_BACKEND_STORE_URI      database: sqlite:////path/mlflow.db, postgresql://user@host/name
#   MLFLOW_ARTIFACTS_DESTINATION  folder, or bucket, that takes the artifacts
#   METASCHED_MLFLOW_PORT         where it listens, 5000 unless set
#   MLFLOW_SERVER_ALLOWED_HOSTS   names that it is reached by, beside localhost, with ports:
#                                 mlflow:5000; requests to any other name are refused
#   POSTGRES_PASSWORD_FILE        file with the database's password, if it has one
#   METASCHED_MLFLOW_WORKERS      processes of the server, 1 unless set
#
# Arguments go on to mlflow server.
set -eu
. "$(dirname "$0")/common.sh"
[ -n "${MLFLOW_BACKEND_STORE_URI:-}" ] || fail "MLFLOW_BACKEND_STORE_URI must name a database"
[ -n "${MLFLOW_ARTIFACTS_DESTINATION:-}" ] ||
  fail "MLFLOW_ARTIFACTS_DESTINATION must say where artifacts go"
if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
  # The driver takes it from here, so that it stands in no URI and on no command line.
  PGPASSWORD="$(cat "$POSTGRES_PASSWORD_FILE")"
  export PGPASSWORD
fi
export MLFLOW_BACKEND_STORE_URI MLFLOW_ARTIFACTS_DESTINATION
export MLFLOW_SERVER_ENABLE_JOB_EXECUTION="${MLFLOW_SERVER_ENABLE_JOB_EXECUTION:-false}"
exec mlflow server --app-name=metasched --serve-artifacts \
  --host="$METASCHED_HOST" \
  --port="${METASCHED_MLFLOW_PORT:-5000}" \
  --workers="${METASCHED_MLFLOW_WORKERS:-1}" \
  "$@"
