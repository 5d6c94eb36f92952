"""Try a CARLA server; see `planet.scripts.carla_smoke`."""

import sys

from planet.scripts import carla_smoke

if __name__ == '__main__':
  sys.exit(carla_smoke.run())
