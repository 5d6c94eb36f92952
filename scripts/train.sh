#!/usr/bin/env bash
# Sets everything up, then trains PlaNet on cartpole_balance at a size that
# two cores can carry. Call it again to continue, or pass arguments of your
# own: ./scripts/train.sh --logdir ~/logs --config default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
set_up
if [ $# = 0 ]; then
  set -- --logdir "${LOGDIR:-logs/planet-cpu}" --config cpu
  say "Training into ${LOGDIR:-logs/planet-cpu}; Ctrl-C saves and stops."
fi
exec "$VENV/bin/python" -m planet.scripts.train "$@"
