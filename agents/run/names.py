"""Names of scalars, pictures and distributions, the same for all systems.

Graphs and loggers have names of their own, such as
`simulate/cond_3/mean_score`, `test_return` and `test/success_rate`, and earlier
versions wrote those. Users see `return/test` and `success/test`, see
docs/curves.md. All translations are in `_TABLE`.
"""

import functools
import re
from collections.abc import Mapping

# Lines of `metrics.jsonl` with scalars of the user, whose names are kept.
OWN = 'own'
_COND = r'(?:(?:cond|scan)(?:_\d+)?/)*'

# Patterns of whole names, and what users see instead. {0}, {1} are the groups
# of a pattern, {kind} is the kind of phase, `train` or `test`, and {test} is
# 'test/' in test phases, '' otherwise. A minus marks log-probabilities, whose
# negatives are the losses.
_TABLE = (
  # Records of epochs.
  ('return', 'return/train'),
  ('(train|test)_return', 'return/{0}'),
  ('success_rate', 'success/train'),
  ('(train|test)_success_rate', 'success/{0}'),
  ('(epoch|episodes|updates|seconds)', 'time/{0}'),
  (r'((?:updates|env_steps)_per_second)', 'time/{0}'),
  ('world_size', 'time/processes'),
  # PlaNet.
  (r'trainer.*score', 'return/{kind}'),
  (r'.*/((?:train|test)_[\w.-]+)/return', 'return/{0}'),
  (
    r'.*/((?:train|test)_[\w.-]+)/(image|animation)(?:/.*)?',
    'episodes/{0}/{1}',
  ),
  (r'.*/((?:train|test)_[\w.-]+)/(\w+_hist)', 'episodes/{0}/{1}'),
  (r'.*/objectives/(\w*divergence|overshooting)', 'loss/{test}{0}'),
  (r'.*/objectives/(\w+)', '-loss/{test}{0}'),
  (r'.*/optimizer_main/(\w+)', 'optimizer/{0}'),
  (r'.*/optimizer_(\w+)/(\w+)', 'optimizer/{0}_{1}'),
  ('.*/general/step', 'time/{test}phase_step'),
  ('.*/general/steps_per_second', 'time/{test}examples_per_second'),
  ('.*/general/seconds_per_step', 'time/{test}seconds_per_example'),
  ('.*/general/dataset/episodes', 'data/{test}episodes'),
  ('.*/general/data/image(?:/.*)?', 'data/image'),
  (
    r'.*/(closedloop)/(prior|posterior)/dist_summaries/(\w+)',
    'model/{test}{0}_{1}/{2}',
  ),
  (
    r'.*/(closedloop)/(prior|posterior)/image/(\w+)(?:/.*)?',
    'model/{0}_{1}/{2}',
  ),
  (r'.*/(openloop)/image/(\w+)(?:/.*)?', 'model/{0}/{1}'),
  (
    r'.*/(closedloop|openloop)/(?:dist_summaries|state)(?:_\d+)?/(\w+)',
    'model/{test}{0}/{1}',
  ),
  # PPO.
  # Means of the episodes since the last summary.
  ('(?:.*/)?mean_score', 'episodes/{test}mean_score'),
  ('(?:.*/)?mean_length', 'length/{kind}'),
  (r'(?:.*/)?update/(?:agent/)?mean_(value|policy)_loss', 'loss/{0}'),
  (r'(?:.*/)?update/(?:agent/)?mean_return', 'update/value_target'),
  (r'(?:.*/)?update/(?:agent/)?mean_value', 'update/value'),
  (r'.*/update/(normalized_advantage|kl_cutoff_episodes)', 'update/{0}'),
  (r'.*/adjust_penalty/(\w+)', 'update/{0}'),
  (r'.*/(value|policy)_gradient_norm', 'optimizer/{0}_gradient_norm'),
  (
    r'.*/scan(?:_\d+)?/(?:cond(?:_\d+)?/)?gradients/(\w+)',
    'optimizer/gradients/{0}',
  ),
  (r'.*/training/scan(?:_\d+)?/(?:cond(?:_\d+)?/)?(\w+)', 'update/{0}'),
  (r'.*/(weights/\w+)', '{0}'),
  (r'.*/normalize_(observ|reward)/(?:.*/)?(mean|stddev|value)', 'data/{0}_{1}'),
  (rf'.*/experience/{_COND}(action|memory_size|normalized_\w+)', 'data/{0}'),
  (rf'.*/perform/{_COND}(\w+)', 'policy/{0}'),
  # HER.
  ('(train|test)/success_rate', 'success/{0}'),
  ('train/episode', 'time/episodes_per_process'),
  ('test/episode', 'time/test/episodes_per_process'),
  ('(train|test)/mean_Q', 'q/{0}'),
  ('stats_o/(mean|std)', 'data/observation_{0}'),
  ('stats_g/(mean|std)', 'data/goal_{0}'),
  # The pipeline.
  ('reward/(train|test)/episodic', 'return/{0}'),
  ('update/loss_(actor|critic)', 'loss/{0}'),
  (r'update/agent/(\w+)', 'update/{0}'),
  # Event files and Weights & Biases of earlier versions.
  ('returns/eval', 'return/test'),
  (r'returns/(.+)', 'return/{0}'),
  ('lengths/eval', 'length/test'),
  (r'lengths/(.+)', 'length/{0}'),
  (r'objectives/(\w*divergence|overshooting)/train', 'loss/{0}'),
  (r'objectives/(\w*divergence|overshooting)/test', 'loss/test/{0}'),
  (r'objectives/(\w+)/test', '-loss/test/{0}'),
  (r'objectives/(\w+|\*)(?:/train)?', '-loss/{0}'),
  ('losses/(value|policy|surr)', 'update/avg_{0}_loss'),
  ('losses/kl_penalty', 'update/avg_kl_penalty'),
  ('gradients/norm', 'optimizer/grad_norm'),
  ('gradients/(value|policy)_norm', 'optimizer/{0}_gradient_norm'),
  ('policy/(kl_change|penalty)', 'update/{0}'),
)
_COMPILED = [(re.compile(x), y) for x, y in _TABLE]
# Parts of names that only tell how a graph was built.
_SCOPES = re.compile(r'(?:cond|scan|while|graph|summaries|simulate)(?:_\d+)?')


def plain_name(tag: str, phase: str = 'train') -> str:
  """Return the name that users see for a tag; that of a name is itself.

  Args:
    tag: Tag of a summary, key of `metrics.jsonl` or of a record, or a name
      that an earlier version used.
    phase: Phase in which it was written.
  """
  return _translate(tag, phase)[0]


def rename(scalars: Mapping[str, float], phase: str) -> dict[str, float]:
  """Return scalars under the names that users see.

  Log-probabilities become losses. Of two tags with the same name, the later
  one counts.

  Args:
    scalars: Dict from tag to number.
    phase: Phase in which they were written; those of `OWN` keep their names.
  """
  if phase == OWN:
    return dict(scalars)
  renamed: dict[str, float] = {}
  for tag, value in scalars.items():
    name, sign = _translate(tag, phase)
    renamed[name] = sign * value
  return renamed


@functools.lru_cache(10000)
def _translate(tag, phase):
  """Return the name of a tag, and the sign of its value."""
  is_test = phase in ('test', 'eval')
  kind = 'test' if is_test else phase
  for pattern, name in _COMPILED:
    if match := pattern.fullmatch(tag):
      test = 'test/' if is_test else ''
      name = name.format(*match.groups(), kind=kind, test=test)
      return name.removeprefix('-'), -1 if name[0] == '-' else 1
  parts = [x for x in tag.split('/') if not _SCOPES.fullmatch(x)]
  return '/'.join(parts) or tag, 1
