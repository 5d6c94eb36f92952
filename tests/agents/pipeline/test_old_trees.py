"""Sessions that were begun when agents made their policies and samplers."""

import copy

import numpy as np
import pytest

from agents.pipeline import episodes, old_trees
from agents.pipeline.params import ddpg_pendulum, ppo_pendulum


def test_ppo():
  """The upgraded tree is the one that is generated today."""
  pytest.importorskip('pybullet', reason='PyBullet is not installed.')
  new = ppo_pendulum.gen_params(ppo_pendulum.cpanel)
  old = copy.deepcopy(new)
  agent = old['agents']['agent']
  config = agent.pop('policy')['args']['config']
  del agent['sampler']
  agent['args'].update(config=config, num_workers=30)
  old['memory']['train'] = {'name': 'agents.pipeline.memory.RollMemory'}
  old['runner']['memory_save'] = 'never'
  old_trees.upgrade(old)
  assert old == new
  old_trees.upgrade(old)
  assert old == new


def test_ddpg():
  new = ddpg_pendulum.gen_params(ddpg_pendulum.cpanel)
  old = copy.deepcopy(new)
  agent = old['agents']['agent']
  args = {k: v for k, v in agent.pop('policy')['args'].items()}
  del args['actor'], args['critic']
  args['batch_size'] = agent.pop('sampler')['args']['batch_size']
  noise = agent['args'].pop('noise')
  args.update({f'noise_{k}': v for k, v in noise.items()})
  agent['args'].update(args)
  old_trees.upgrade(old)
  assert old == new


def test_episodes_of_an_old_agent():
  """They go on in the memory."""
  rows = {'/rewards': np.arange(8, dtype=np.float32).reshape(2, 4, 1)}
  finished = [({'/rewards': np.ones((4, 1), np.float32)}, 3)]
  lengths = np.array([1, 2])
  state = {
    'finished': finished,
    'unfinished': {'rows': rows, 'lengths': lengths},
  }
  snapshots = old_trees.find_snapshots({'agent': state})
  memory = episodes.EpisodeMemory(None, keys=['/rewards'], max_length=4)
  memory.set_snapshot(snapshots['train'])
  masks = np.array([[1, 0], [1, 1]], np.float32)[..., None]
  rewards = np.array([[9, 0], [9, 0]], np.float32)[..., None]
  memory.store({'/rewards': rewards, '/masks': masks})
  found = memory.take(2)
  assert found['/lengths'].tolist() == [3, 2]
  assert found['/rewards'][1, :, 0].tolist() == [0, 9, 2, 3]
  empty = {'finished': [], 'unfinished': {'rows': {}, 'lengths': None}}
  assert old_trees.find_snapshots({'agent': empty, 'other': {}}) is None
