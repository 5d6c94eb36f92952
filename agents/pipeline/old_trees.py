"""Sessions from the time when agents made their policies and samplers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.pipeline.params import common

_PPO = 'agents.pipeline.ppo.PPOAgent'
_DDPG = 'agents.pipeline.ddpg.DDPGAgent'
_DDPG_POLICY = ('gamma', 'actor_rate', 'critic_rate', 'polyak')
_DDPG_NOISE = ('noise_mu', 'noise_theta', 'noise_sigma')


def upgrade(params: dict[str, Any]) -> None:
  """Name policy and sampler of each agent that does not name any.

  Args:
    params: Tree of parameters, changed in place.
  """
  for name, node in params['agents'].items():
    args = node.get('args', {})
    if 'policy' in node or 'sampler' in node:
      continue
    if node['name'] == _PPO and 'config' in args:
      args.pop('num_workers', None)
      config = args.pop('config')
      node.update(common.define_ppo_parts(config))
      params['memory']['train'] = common.define_episode_memory(name, config)
      params['runner']['memory_save'] = 'every'
    elif node['name'] == _DDPG:
      policy = {x: args.pop(x) for x in _DDPG_POLICY if x in args}
      noise = {x: args.pop(x) for x in _DDPG_NOISE if x in args}
      args['noise'] = {k.removeprefix('noise_'): v for k, v in noise.items()}
      node.update(common.define_ddpg_parts(policy, args.pop('batch_size', 64)))


def find_snapshots(states: Mapping[str, Any]) -> dict[str, Any] | None:
  """Return contents of memories that agents kept among their states.

  Args:
    states: Dict from name of agent to its state in a checkpoint.

  Returns:
    Dict from name of memory to snapshot, None if there is none.
  """
  for state in states.values():
    if 'unfinished' not in state or state['unfinished']['lengths'] is None:
      continue
    rows, finished = state['unfinished']['rows'], state['finished']
    lengths = np.array([length for _, length in finished], int)
    snapshot = {
      'unfinished/lengths': state['unfinished']['lengths'],
      'finished/lengths': lengths,
    }
    for key, value in rows.items():
      snapshot[f'unfinished{key}'] = value
      snapshot[f'finished{key}'] = np.array([x[key] for x, _ in finished])
    return {'train': snapshot}
  return None
