#!/bin/sh
# Starts the server of this folder as CarlaUE4.sh starts CARLA: as a child.
cd "$(dirname "$0")/../../../../../.." || exit
"${PYTHON:-python3}" -m tests.planet.envs.carla.server.protocol "$@"
