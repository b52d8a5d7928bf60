#!/bin/sh
# A private Slurm with fake nodes, in the foreground, to try metasched shadow and steer.
#
#   METASCHED_SLURM_NODES   nodes of 64 processors and 4 GPUs (4)
#   SLURM_CONF              where its configuration is to lie (/tmp/slurm/slurm.conf)
#
# It listens on 127.0.0.1 alone, which the name of the machine must stand for.
set -eu
exec python "$(dirname "$0")/../tests/slurm/private_slurm.py" --nodes "${METASCHED_SLURM_NODES:-4}" \
  --folder "$(dirname "${SLURM_CONF:-/tmp/slurm/slurm.conf}")"
