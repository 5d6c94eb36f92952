"""DDPG on the pendulum of gymnasium.

The constants are those of the original, except for `number_epochs`, which was
1000, and for tests and checkpoints, which were every 100 and 10 epochs.
"""

from collections.abc import Mapping
from typing import Any

from agents.pipeline.params import common
from agents.run import schema

cpanel: dict[str, Any] = dict(
  number_epochs=40,
  epoch_size=1000,
  test_activate=True,
  test_interval=5,
  test_win_size=10,
  save_interval=5,
  # Hours, and epochs of this process; None for no limit.
  max_exec_time=20.0,
  max_exec_iter=None,
  seed=100,
  # A million in the original; only what is filled takes memory.
  memory_size_in_chunks=1000000,
  model_name='Pendulum-v1',
  # Module that registers the environment, if it is not gymnasium's.
  from_module='',
  observation_key='agent',
  gamma=0.99,
  num_workers=1,
  n_steps=1,
  n_update=1,
  batch_size=64,
  # Frames with actions at random.
  warm_start=0,
  agent_type='agents.pipeline.ddpg.DDPGAgent',
  lr_actor=1e-4,
  lr_critic=1e-3,
  polyak_factor=0.001,
  noise_mu=0.0,
  noise_theta=0.15,
  noise_sigma=0.2,
  normalize_observations=False,
  normalize_rewards=False,
  norm_clip=5.0,
  # Threads of TensorFlow; more than one is slower for networks this small.
  tf_threads=1,
)


def gen_params(cpanel: Mapping[str, Any]) -> dict[str, Any]:
  """Generate the parameter tree.

  Args:
    cpanel: Dict with the keys of the one above.

  Returns:
    Nested dict of plain data.

  Raises:
    UsageError: If a value is not valid, or the environment cannot be used.
  """
  from agents.pipeline import env_config

  for key in ('n_steps', 'batch_size'):
    schema.convert(schema.Positive, cpanel[key], f'Key {key!r}')
  env = {'name': cpanel['model_name'], 'from_module': cpanel['from_module']}
  key = cpanel['observation_key']
  env['config'] = env_config.inspect(env, 'pipeline', key=key)
  return {
    'runner': common.define_runner(cpanel),
    'tf': {'intra_op': cpanel['tf_threads'], 'inter_op': cpanel['tf_threads']},
    'env': env,
    'memory': define_memory(cpanel),
    'agents': {'agent': define_agent(cpanel, env['config'])},
    'explorer': _define_explorers(cpanel, env),
  }


def define_memory(cpanel: Mapping[str, Any]) -> dict[str, Any]:
  """Return the node `memory` of the parameters."""
  return {
    'train': {
      'name': 'agents.pipeline.memory.RingMemory',
      'args': {
        'chunk_sample_len': cpanel['n_steps'],
        'buffer_chunk_len': cpanel['memory_size_in_chunks'],
        'exclude_keys': ['/infos/*', '*/hidden_state'],
      },
    }
  }


def define_agent(
  cpanel: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
  """Return the node of the agent, for an environment with this config."""
  key = cpanel['observation_key']
  return {
    'name': cpanel['agent_type'],
    'args': {
      **common.find_spaces(config, key),
      'observation_key': key,
      'n_update': cpanel['n_update'],
      'noise': {x: cpanel[f'noise_{x}'] for x in ('mu', 'theta', 'sigma')},
    },
    'policy': {
      'name': 'agents.pipeline.ddpg.DDPGPolicy',
      'args': {
        'actor': {'reference': 'agents.pipeline.ddpg:actor_network'},
        'critic': {'reference': 'agents.pipeline.ddpg:critic_network'},
        'gamma': cpanel['gamma'],
        'actor_rate': cpanel['lr_actor'],
        'critic_rate': cpanel['lr_critic'],
        'polyak': cpanel['polyak_factor'],
      },
    },
    'sampler': common.define_sampler(
      'pick_memory', 'sample_replay', batch_size=cpanel['batch_size']
    ),
  }


def _define_explorers(cpanel, env):
  return common.define_explorers(
    cpanel['seed'],
    (90, 100, 101),
    {
      'env': env,
      'num_workers': cpanel['num_workers'],
      'normalize_observations': cpanel['normalize_observations'],
      'normalize_rewards': cpanel['normalize_rewards'],
      'clip': cpanel['norm_clip'],
      'gamma': cpanel['gamma'],
    },
    train={
      'n_steps': cpanel['n_steps'],
      'warm_start': cpanel['warm_start'],
      # An epoch has a return as soon as an episode has ended.
      'win_size': -1,
    },
    test={'n_episodes': cpanel['test_win_size']},
    eval={'n_episodes': 1, 'win_size': -1, 'num_workers': 1},
  )
