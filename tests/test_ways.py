"""How far a parameter goes from the command line to the graph."""

import pytest

from agents import train_ppo
from agents.tools.tf1 import tf
from baselines_her import run
from tests import counting

VALUE = 0.93721


@pytest.mark.slow
def test_parameter_of_ppo(tmp_path):
  """Text, mapping, configuration, graph."""
  words = [
    '--config=cartpole',
    f'--logdir={tmp_path}',
    f'--params={{kl_cutoff_coef: {VALUE}}}',
    '--noenv_processes',
  ]
  last = 'agents/ppo/update.py', '_policy_loss'
  way = counting.find_way(lambda: train_ppo.run(words), VALUE, last)
  assert 'agents/configs.py' in way and len(way) <= 9, way


@pytest.mark.slow
def test_setting_of_her(tmp_path):
  """Six files of HER; what they share parses, checks and broadcasts it."""
  words = ['her-train', f'--log_path={tmp_path}', f'--gamma={VALUE}']
  last = 'baselines_her/losses.py', 'target_values'
  with tf.Graph().as_default():
    way = counting.find_way(lambda: run.run(words), VALUE, last)
  own = {x for x in way if x.startswith('baselines_her/')}
  assert own == {
    f'baselines_her/{x}.py'
    for x in ('run', 'settings', 'her', 'ddpg', 'training_graph', 'losses')
  }
  assert len(way) <= 9, way
