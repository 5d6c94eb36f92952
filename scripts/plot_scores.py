"""Plot scores over environment steps; see `agents.plot_scores`."""

import sys

from agents import plot_scores

if __name__ == '__main__':
  sys.exit(plot_scores.run())
