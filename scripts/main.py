"""Run an agent in the pipeline; see `agents.pipeline.main`."""

import sys

from agents.pipeline.main import entrypoint

if __name__ == '__main__':
  sys.exit(entrypoint())
