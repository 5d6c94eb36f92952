#!/usr/bin/env bash
# Sets everything up, then trains PlaNet on cartpole_balance with settings for
# two cores; README.md says what it reaches in an hour. Repeat the command to
# resume. Passes arguments to planet-train:
# ./scripts/train.sh --logdir ~/logs --config default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh
set_up
if [ $# = 0 ]; then
  set -- --logdir "${LOGDIR:-logs/planet-cpu}" --config cpu
  say "Training in $2; press Ctrl-C to save and stop."
fi
exec "$VENV/bin/python" -m planet.scripts.train "$@"
