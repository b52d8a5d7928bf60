#!/bin/sh
# Succeeds if the MLflow server of this machine answers.
set -eu
. "$(dirname "$0")/common.sh"
answers "$METASCHED_HOST" "${METASCHED_MLFLOW_PORT:-5000}" /health
