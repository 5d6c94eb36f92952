"""HER: deep deterministic policy gradients with hindsight relabeling."""

import os

try:
  from agents.tools import lazy
except ImportError as error:
  raise ImportError(
    'The module `agents` does not belong to reference-agents. A folder or '
    'package of the same name (openai-agents, batch-ppo) hides it; start from '
    'another folder or use a separate virtual environment.'
  ) from error

# Products of single rows gain nothing from threads, which get into each
# other's way. Counts if NumPy is not loaded yet.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

lazy.export(__name__)
