"""PPO on PyBullet's pendulum, with the settings of `agents.configs`.

An epoch of `agents.train_ppo` takes 30 agents times 200 steps for training and
the same for evaluation; its mean number of updates depends on the lengths of
the episodes. Here that number is fixed.
"""

from collections.abc import Mapping
from typing import Any

from agents.pipeline.params import common
from agents.run import errors

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
_WRAPPERS = 'agents.tools.wrappers'
# What the agent learns from.
KEYS = [
  '/observations/agent',
  '/agents/agent/actions',
  '/agents/agent/artifacts/mean',
  '/agents/agent/artifacts/logstd',
  '/rewards',
]


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
  from agents.run import references

  overrides = {v: cpanel[k] for k, v in _NAMES.items()}
  config = runs.prepare(
    cpanel['config'], overrides={**overrides, **cpanel['ppo']}
  )
  env = _define_env(config)
  # The wrappers keep shapes, but convert all spaces to boxes.
  bare = {x: y for x, y in env.items() if x != 'wrappers'}
  env['config'] = env_config.inspect(bare)
  plain = references.to_plain(config)
  return {
    # Episodes continue in the next update.
    'runner': common.define_runner(cpanel, memory_save='every'),
    # Most operations are tiny, as in `agents.train_ppo`.
    'tf': {'intra_op': 1, 'inter_op': 1},
    'env': env,
    'memory': {
      'train': {
        'name': 'agents.pipeline.episodes.EpisodeMemory',
        'args': {'keys': KEYS, 'max_length': plain['max_length']},
      }
    },
    'agents': {
      'agent': {
        'name': 'agents.pipeline.ppo.PPOAgent',
        'args': common.find_spaces(env['config']),
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


def _define_env(config):
  """Environment with the wrappers of `agents.envs.continuous.batch`."""
  if not isinstance(config.env, str):
    raise errors.UsageError(
      'The environment of this configuration has no id, which the pipeline '
      'needs; choose another configuration, or use agents.train_ppo.'
    )
  limit = {'duration': config.max_length}
  others = 'RangeNormalize', 'ClipAction', 'ConvertTo32Bit', 'CacheSpaces'
  settings = config.env_settings
  return {
    'name': config.env,
    **({'kwargs': settings} if settings else {}),
    'wrappers': [
      {'name': f'{_WRAPPERS}.LimitDuration', 'args': limit},
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
    # The first to end, as in `agents.train_ppo`.
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
