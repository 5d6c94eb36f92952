"""PPO on PyBullet's pendulum, with the settings of `agents.configs`.

An epoch of `agents.train_ppo` takes 30 agents times 200 steps for training and
the same for evaluation; its mean number of updates depends on the lengths of
the episodes. Here that number is fixed.
"""

from collections.abc import Mapping
from typing import Any

from agents.pipeline.params import common
from agents.run import errors, references

# None stands for the value of `agents.configs`.
cpanel: dict[str, Any] = dict(
  number_epochs=100,
  epoch_size=5,
  test_activate=True,
  test_interval=1,
  test_win_size=None,
  save_interval=1,
  max_exec_time=None,
  max_exec_iter=None,
  seed=0,
  # Function of `agents.configs`, and what replaces its values; `ppo` may hold
  # further ones, such as {"network": "recurrent_gaussian"}.
  config='pybullet_pendulum',
  model_name=None,
  num_workers=None,
  n_episodes=None,
  n_update=None,
  gamma=None,
  learning_rate=None,
  ppo={},
  # Processes of environments; None for one per core.
  env_processes=None,
)

_NAMES = {
  'model_name': 'env',
  'num_workers': 'num_agents',
  'n_episodes': 'update_every',
  'n_update': 'update_epochs',
  'gamma': 'discount',
  'learning_rate': 'learning_rate',
}
# What a session takes from its own keys.
_ELSEWHERE = {'seed': 'seed', 'steps': 'number_epochs'}
_WRAPPERS = 'agents.tools.wrappers'


def find_keys(action_space: Mapping[str, Any]) -> list[str]:
  """Return what the agent learns from, by the description of its actions."""
  discrete = action_space['typ'] == 'Discrete'
  parameters = ['logits'] if discrete else ['mean', 'logstd']
  names = ['actions', *(f'artifacts/{x}' for x in parameters)]
  found = [f'/agents/agent/{x}' for x in names]
  return ['/observations/agent', *found, '/rewards']


def gen_params(cpanel: Mapping[str, Any]) -> dict[str, Any]:
  """Generate the parameter tree.

  Args:
    cpanel: Dict with the keys of the one above.

  Returns:
    Nested dict of plain data.

  Raises:
    UsageError: If a value is not valid, or the environment cannot be used.
  """
  from agents import runs
  from agents.pipeline import env_config

  misplaced = _ELSEWHERE.keys() & cpanel['ppo'].keys()
  if misplaced:
    name = min(misplaced)
    raise errors.UsageError(
      f"{name!r} in key 'ppo' of --cpanel has no effect in a session; give the "
      f'key {_ELSEWHERE[name]!r} instead.'
    )
  overrides = {v: cpanel[k] for k, v in _NAMES.items()}
  config, layout = runs.prepare_for(
    cpanel['config'], {**overrides, **cpanel['ppo']}
  )
  env = _define_env(config, layout)
  # Without the wrappers that scale actions.
  first = env['wrappers'][: int(not layout.unchanged)]
  env['config'] = env_config.inspect({**env, 'wrappers': first})
  plain = references.to_plain(config)
  spaces = common.find_spaces(env['config'])
  tests = cpanel['test_activate'] and config.eval_episodes > 0
  return {
    # Episodes continue in the next update.
    'runner': common.define_runner(
      {**cpanel, 'test_activate': tests}, memory_save='every'
    ),
    # Most operations are tiny, as in `agents.train_ppo`.
    'tf': {'intra_op': 1, 'inter_op': 1},
    'env': env,
    'memory': {
      'train': {
        'name': 'agents.pipeline.episodes.EpisodeMemory',
        'args': {
          'keys': find_keys(spaces['action_space']),
          'max_length': plain['max_length'],
        },
      }
    },
    'agents': {
      'agent': {
        'name': 'agents.pipeline.ppo.PPOAgent',
        'args': {**spaces, **_describe_packing(layout)},
        'policy': {
          'name': 'agents.ppo.policy.Policy',
          'args': {'config': plain},
        },
        'sampler': common.define_sampler(
          'pick_memory', 'take_episodes', count=plain['update_every']
        ),
      }
    },
    'explorer': _define_explorers(cpanel, config, env),
  }


def _describe_packing(layout):
  """Return the arguments of an agent whose observations are packed."""
  if not layout.packing:
    return {}
  images, size = layout.packing
  return {'packing': {'images': [list(x) for x in images], 'size': size}}


def _define_env(config, layout):
  """Environment as in `agents.tools.continuous.ScaledVectorEnv`."""
  if not isinstance(config.env, str):
    raise errors.UsageError(
      'The environment of this configuration has no id, which the pipeline '
      'needs; choose another configuration, or use agents.train_ppo.'
    )
  from agents import configs

  images = configs.sees_images(config)
  limit = {'duration': config.max_length}
  convert = {
    'name': 'agents.envs.observations.NetworkInput',
    'args': {'convolutions': images},
  }
  ranges: dict[str, Any] = {'name': f'{_WRAPPERS}.RangeNormalize'}
  if images:
    ranges['args'] = {'observ': False}
  others = 'ClipAction', 'ConvertTo32Bit', 'CacheSpaces'
  settings = config.env_settings
  return {
    'name': config.env,
    **({'kwargs': settings} if settings else {}),
    'wrappers': [
      *([] if layout.unchanged else [convert]),
      {'name': f'{_WRAPPERS}.LimitDuration', 'args': limit},
      ranges,
      *({'name': f'{_WRAPPERS}.{x}'} for x in others),
    ],
  }


def _define_explorers(cpanel, config, env):
  seed = cpanel['seed']
  return common.define_explorers(
    # The seeds of `agents.train_ppo` for training, and others beyond them.
    None if seed is None else 1000 * seed,
    (0, 100, 200),
    {
      'env': env,
      'num_workers': config.num_agents,
      'processes': cpanel['env_processes'],
    },
    # The first episodes to end count, as in `agents.train_ppo`.
    train={
      'n_episodes': config.update_every,
      'quota': False,
      'win_size': -1,
    },
    test={
      'n_episodes': config.eval_episodes,
      'win_size': cpanel['test_win_size'],
    },
    eval={'n_episodes': 1, 'num_workers': 1, 'win_size': -1},
  )
