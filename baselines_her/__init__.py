"""HER: deep deterministic policy gradients with hindsight relabelling."""

import os

try:
  from agents.tools import lazy
except ImportError as error:
  raise ImportError(
    'The module `agents` is not the one of reference-agents. Another package '
    'of that name (openai-agents, batch-ppo) or a folder of that name comes '
    'first; use a separate environment, or start from another folder.'
  ) from error

# Products of single rows gain nothing from threads, which get into each
# other's way. Counts if NumPy is not loaded yet.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

lazy.export(__name__)
