"""Names of variables in checkpoints of the released PlaNet.

Weights have the same names. Slots of Adam lack a scope there, and its powers
of beta are in a condition that is numbered by its position in the graph:

  here   graph/optimizers/graph/head_reward/layer/kernel/Adam
  there  graph/graph/head_reward/layer/kernel/Adam
  here   graph/optimizers/cond_main/cond/beta1_power
  there  graph/cond_1/optimizer_main/beta1_power, or graph/cond/...
"""

import re
from collections.abc import Iterable


def find(name: str, stored: Iterable[str]) -> str | None:
  """Return the name of a variable in a checkpoint, None if it is missing.

  Args:
    name: Name of the variable here.
    stored: Names in the checkpoint.
  """
  names = set(stored)
  if name in names:
    return name
  slot = name.replace('/optimizers/graph/', '/graph/')
  if slot in names:
    return slot
  power = re.fullmatch(r'(.*)/optimizers/cond_(\w+)/cond/(.*)', name)
  if not power:
    return None
  scope, optimizer, rest = map(re.escape, power.groups())
  pattern = rf'{scope}/cond(_\d+)?/optimizer_{optimizer}/{rest}'
  return next((x for x in sorted(names) if re.fullmatch(pattern, x)), None)
