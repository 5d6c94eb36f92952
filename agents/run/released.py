"""Runs of the original PPO: its settings and names of variables.

The original writes Python objects to `config.yaml`. They are read as plain
data, and only those that are known; nothing is imported or called.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

from agents.run import yaml_text

_HOMES = ('agents.', 'pybullet_envs.minitaur.agents.', 'tensorflow.')
_CLASSES = {
  'PPO': 'PPOAlgorithm',
  'ForwardGaussianPolicy': 'feed_forward_gaussian',
  'RecurrentGaussianPolicy': 'recurrent_gaussian',
}
_RENAMED = {
  'policy_lr': 'learning_rate',
  'policy_optimizer': 'optimizer',
  'init_output_factor': 'init_mean_factor',
}
# Have no counterparts here: one optimizer trains policy and value function.
_DROPPED = {'value_lr', 'value_optimizer', 'network_config', 'logdir'}
_TAG = 'tag:yaml.org,2002:python/'
_ATTR_DICT = 'agents.tools.attr_dict.AttrDict'
_MINITAUR = 'pybullet_envs.minitaur.envs.'


class _Name(str):
  """Name of a function or class."""


def parse(text: str) -> Any:
  """Return plain data from YAML with objects of the original PPO.

  Raises:
    ValueError: If it is not YAML, or contains other objects.
  """
  data = yaml_text.parse(text, _add_tags)
  return _to_settings(data) if isinstance(data, dict) else data


def _add_tags(constructor):
  """Let a constructor read what Python 2 writes, and the known objects."""
  from ruamel import yaml

  def tuple_(self, node):
    return self.construct_sequence(node, deep=True)

  def name(self, suffix, node):
    return _Name(suffix)

  def object_(self, suffix, node):
    kind = suffix.partition(':')[2]
    if isinstance(node, yaml.nodes.MappingNode):
      parts = self.construct_mapping(node, deep=True)
      if kind.endswith(_ATTR_DICT):
        return dict(parts.get('dictitems') or {})
      if kind == 'functools.partial':
        return _read_partial(parts)
    if kind.startswith('planet.'):
      raise ValueError(
        'it is of the original PlaNet, whose checkpoints can be used, but not '
        'its settings, see docs/coming-from.md'
      )
    raise ValueError(f'it contains the Python object {kind!r}')

  constructor.add_constructor(f'{_TAG}tuple', tuple_)
  constructor.add_constructor(f'{_TAG}long', constructor.construct_yaml_int)
  for kind in ('str', 'unicode'):
    text = constructor.construct_yaml_str
    constructor.add_constructor(f'{_TAG}{kind}', text)
  constructor.add_multi_constructor(f'{_TAG}name:', name)
  constructor.add_multi_constructor(f'{_TAG}object', object_)


def _read_partial(parts):
  """Return a function's name and keywords."""
  state = parts.get('state') or [*parts.get('args', ()), (), {}, None]
  function, args, keywords, *_ = state
  if args or not isinstance(function, _Name):
    raise ValueError('it contains a functools.partial with arguments')
  return {'function': function, 'keywords': dict(keywords or {})}


def _to_settings(data):
  """Return the settings of the original under the names of this project."""
  found = {k: v for k, v in data.items() if k not in _DROPPED}
  for old, new in _RENAMED.items():
    if old in found:
      found.setdefault(new, found[old])
      del found[old]
  if 'update_epochs_policy' in found:
    found.setdefault('update_epochs', found['update_epochs_policy'])
  if 'init_std' in found:
    found.setdefault('init_logstd', math.log(found.pop('init_std')))
  if not found.pop('normalize_ranges', True):
    raise ValueError('normalize_ranges: false is not supported')
  env = found.get('env')
  if isinstance(env, dict):
    found['env_settings'] = env['keywords']
    env = found['env'] = env['function']
  if isinstance(env, _Name):
    own = env.startswith(_MINITAUR)
    found['env'] = env.rpartition('.')[2] if own else _with_colon(env)
  for key in ('algorithm', 'network', 'optimizer'):
    value = found.get(key)
    if isinstance(value, _Name):
      short = value.rpartition('.')[2]
      own = value.startswith(_HOMES)
      found[key] = _CLASSES.get(short, short) if own else _with_colon(value)
  return {'version': 1, **found}


def _with_colon(name):
  return ':'.join(name.rsplit('.', 1))


def find_names(stored: Iterable[str]) -> dict[str, str]:
  """Return the variables of a checkpoint of the original, by their names here.

  Args:
    stored: Names in the checkpoint.

  Returns:
    Dict from name here to stored name; empty if another program has written it.
    Episodes of an unfinished update and running scores are left out.
  """
  names = sorted(stored)
  if not any('/fully_connected' in x for x in names):
    return {}
  found: dict[str, str] = {}
  for name in names:
    found.setdefault(_rename(name), name)
  return found


def _rename(name):
  for pattern, new in (
    (r'^network/rnn/(policy|value)/', r'network/\1/'),
    (r'/fully_connected', '/dense'),
    (r'/weights', '/kernel'),
    (r'/biases', '/bias'),
    (r'/(policy|value)_optimizer', '/Adam'),
    (
      r'^network/policy/.*/(w_ru|b_ru|w_c|b_c)\b',
      r'network/policy/rnn/cell/gru_cell/\1',
    ),
    (r'^(normalize_\w+)/Variable$', r'\1/count'),
    (r'^(normalize_\w+)/Variable_1$', r'\1/mean'),
    (r'^(normalize_\w+)/Variable_2$', r'\1/var_sum'),
    (r'^Variable_1$', 'penalty/penalty'),
    (r'^.*/(beta\d_power)$', r'optimizer/\1'),
  ):
    name = re.sub(pattern, new, name)
  return name
