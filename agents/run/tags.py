"""Plain names of scalars, whose tags in graphs tell where they were made."""

import re

# Patterns of tags, and names in which {0}, {1} are the groups of the pattern.
_NAMES = (
  # PlaNet: mean returns of an epoch, returns of one collection, and what is
  # minimised or maximised, which is why it is not called a loss.
  (r'(train|test)_return', 'returns/{0}'),
  (r'.*/((?:train|test)_\w+)/return', 'returns/{0}'),
  (r'.*/objectives/(\w+)', 'objectives/{0}/{phase}'),
  (r'.*/grad_norm', 'gradients/norm'),
  # PPO.
  (r'.*/mean_score', 'returns/{phase}'),
  (r'.*/mean_length', 'lengths/{phase}'),
  (r'.*/avg_(value|policy|surr)_loss', 'losses/{0}'),
  (r'.*/avg_(kl_penalty)', 'losses/{0}'),
  (r'.*/(value|policy)_gradient_norm', 'gradients/{0}_norm'),
  (r'.*/adjust_penalty/(kl_change|penalty)', 'policy/{0}'),
)


def plain_name(tag: str, phase: str) -> str | None:
  """Return a name such as `returns/test` or `gradients/norm`.

  Args:
    tag: Tag of a summary, or a key of `metrics.jsonl`.
    phase: Phase in which it was written.

  Returns:
    The name, None for tags that have none.
  """
  for pattern, name in _NAMES:
    if match := re.fullmatch(pattern, tag):
      return name.format(*match.groups(), phase=phase)
  return None
