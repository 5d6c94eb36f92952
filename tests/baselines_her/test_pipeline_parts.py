"""Networks, sampler and values of HER in the trees of the pipeline."""

import os

import pytest

from agents.pipeline import session
from agents.run import references
from baselines_her import actor_critic, her_sampler
from tests.baselines_her import test_pipeline

toys = test_pipeline.toys


class Narrow(actor_critic.ActorCritic):
  """Networks with an argument of their own."""

  def __init__(self, *args, narrowness=1, hidden, **kwargs):
    self.narrowness = narrowness
    super().__init__(*args, hidden=hidden // narrowness, **kwargs)


@references.nameable
def latest_only(reward_fun):
  """Sampler of the last transition of each episode, without hindsight."""
  sampler = her_sampler.HindsightSampler(0, reward_fun)
  draw = sampler.draw

  def draw_last(episodes, length, batch_size):
    draws = draw(episodes, length, batch_size)
    draws.time[:] = length - 1
    return draws

  sampler.draw = draw_last
  return sampler


def test_other_parts(tmp_path, monkeypatch):
  """Networks and sampler of one's own are names in the tree."""
  define = test_pipeline.gen_params

  def other(panel):
    params = define(panel)
    args = params['memory']['train']['args']
    args['settings'].update(
      network_class=f'{__name__}:Narrow',
      network_args={'hidden': 8, 'layers': 1, 'narrowness': 4},
    )
    args['sampler'] = {'reference': f'{__name__}:latest_only'}
    return params

  monkeypatch.setattr(test_pipeline, 'gen_params', other)
  _, runner = test_pipeline.train(tmp_path, number_epochs=1)
  policy = runner.agents['agent'].policy
  assert isinstance(policy.main, Narrow) and policy.main.narrowness == 4
  assert policy.network_class == f'{__name__}:Narrow'
  state = test_pipeline.load_policy(
    tmp_path / 'run' / 'policies' / 'policy_best.pkl'
  )
  shapes = [x.shape for x in state['tf']]
  assert (6, 2) in shapes and (6, 8) not in shapes
  last = policy.buffer.buffers['u'][: policy.buffer.current_size, -1]
  drawn = policy.buffer.sample(50)['u']
  assert {tuple(x) for x in drawn} <= {tuple(x) for x in last}


@pytest.mark.parametrize(
  'panel',
  [{'gamma': 0.5, 'T': 6, 'lr': 0.1}, {'load_path': '/weights', 'lr': None}],
)
def test_settings_of_the_panel(panel):
  """All that the command line has, down to the memory."""
  found = session.update_cpanel(test_pipeline.cpanel, panel)
  tree = test_pipeline.gen_params(found)
  settings = tree['memory']['train']['args']['settings']
  wanted = {**panel, 'lr': None, 'Q_lr': panel['lr'] or 0.001}
  assert {name: settings[name] for name in wanted} == wanted


def test_files_of_the_panel():
  """A session can be resumed from another folder."""
  found = session.update_cpanel(test_pipeline.cpanel, {'load_path': 'weights'})
  tree = test_pipeline.gen_params(found)
  settings = tree['memory']['train']['args']['settings']
  assert settings['load_path'] == os.path.abspath('weights')


@pytest.mark.parametrize(
  'panel', [{'norm_clip': 2.5, 'replay_k': 0.5}, {'norm_clip': 3}]
)
def test_values_of_the_panel(panel):
  """Fractions are taken where the command line takes them."""
  found = session.update_cpanel(test_pipeline.cpanel, panel)
  for name in ('norm_clip', 'replay_k'):
    assert type(found[name]) is float
    assert found[name] == panel.get(name, test_pipeline.cpanel[name])
