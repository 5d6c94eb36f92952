"""What `agents.check_env` finds in environments that make mistakes."""

import re

import gymnasium
import numpy as np
import pytest

from agents import check_env
from agents.envs import check, contract, opengl
from agents.run import errors
from baselines_her import config
from tests import processes
from tests.agents.envs import odd_gymnasium

EMPTY = gymnasium.spaces.Box(-1, 1, (0,), np.float32)
CHOICE = gymnasium.spaces.OneOf([EMPTY, gymnasium.spaces.Discrete(3)])


class Pair(gymnasium.Env):
  """Observes a list of two things, the second of which becomes NaN."""

  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  observation_space = gymnasium.spaces.Tuple(
    [gymnasium.spaces.Discrete(3), action_space]
  )

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return [0, np.zeros(1, np.float32)], {}

  def step(self, action):
    return [0, np.full(1, np.nan, np.float32)], 0.0, True, False, {}


def test_tuples():
  gymnasium.register('Pair-v0', Pair)
  try:
    (found,) = check.check('Pair-v0', ['ppo']).problems['ppo']
  finally:
    gymnasium.registry.pop('Pair-v0')
  assert 'observation part 1 in step 1 is NaN' in found


def test_what_is_right():
  report = check.check(odd_gymnasium.register('Right'), ['planet', 'ppo'])
  assert report.problems == {'planet': [], 'ppo': []}
  assert not report.hints
  assert report.facts['episode'] == '10 steps'
  assert report.facts['images'] == 'uint8 [8, 8, 3]'


@pytest.mark.parametrize(
  'mistake, system, sentence',
  [
    (dict(nan_at=4), 'ppo', 'observation in step 4 is NaN; return finite'),
    (dict(nan_at=4), 'planet', 'observation in step 4 is NaN'),
    (dict(shape_at=2), 'ppo', r'shape \(4,\) in step 2, but its .* \(3,\)'),
    (dict(reward=float('inf')), 'ppo', 'reward in step 1 is infinite'),
    (dict(reward=[1.0, 2.0]), 'ppo', r'reward \[1.0, 2.0\] in step 1; return'),
    (dict(reward=None), 'ppo', 'reward None in step 1; return a number'),
    (
      dict(image='none'),
      'planet',
      'render of .* returns None; .*observations: ve',
    ),
    (dict(image='int32'), 'planet', 'images from int32 to uint8'),
    (
      dict(goals=True, other_reward=True),
      'her',
      'compute_reward returns .* for a step whose reward',
    ),
    (dict(), 'her', 'observations must be dictionaries'),
    (dict(kind=odd_gymnasium.Blind), 'planet', 'takes no render_mode'),
    (dict(observed=CHOICE), 'ppo', r'cannot learn from .*: OneOf\('),
    (dict(observed=EMPTY), 'ppo', 'Box.* is empty'),
    (dict(observed=EMPTY), 'pipeline', 'DDPG observes vectors, but'),
    (dict(actions=EMPTY), 'ppo', r'actions .* shape \(0,\)'),
    (dict(actions=EMPTY), 'planet', r'actions .* shape \(0,\)'),
    (dict(actions=EMPTY), 'pipeline', 'DDPG needs vectors'),
    (dict(actions=EMPTY, goals=True), 'her', 'actions must be vectors'),
    (
      dict(goals=True, info=lambda step: {'force': np.zeros(3 - step // 4)}),
      'her',
      r"info\['force'\] = .* in step 4, but numbers of size 3 in its first",
    ),
  ],
)
def test_mistakes(mistake, system, sentence):
  env_id = odd_gymnasium.register('Wrong', **mistake)
  report = check.check(env_id, [system])
  (found,) = report.problems[system]
  assert re.search(sentence, found), found


@pytest.mark.parametrize(
  'image, sentence',
  [('uint8', 'a reward that is infinite'), ('float64', 'ZeroDivisionError')],
)
def test_rewards_of_reached_goals(image, sentence):
  """No step shows them; the training refused what the check called ok."""
  kind = odd_gymnasium.Near
  env_id = odd_gymnasium.register('Near', kind=kind, goals=True, image=image)
  (found,) = check.check(env_id, ['her']).problems['her']
  assert sentence in found and 'compute_reward' in found
  with pytest.raises(errors.EnvError, match=sentence):
    config.Task(env_id)


def test_success_that_is_nan():
  """Which a training refuses, too."""
  gymnasium.register(
    'Lost-v0',
    odd_gymnasium.Odd,
    max_episode_steps=10,
    kwargs=dict(goals=True, info=lambda step: {'is_success': np.nan}),
  )
  try:
    (problem,) = check.check('Lost-v0', ['her']).problems['her']
  finally:
    del gymnasium.registry['Lost-v0']
  assert problem.startswith('NaN success encountered in Lost-v0')


def test_numbers_that_come_later():
  """HER stores only what the first info has."""
  env_id = odd_gymnasium.register(
    'Late',
    goals=True,
    info=lambda step: {'force': [0.0] * step} if step > 1 else {},
  )
  assert check.check(env_id, ['her']).problems == {'her': []}


def test_longer_than_the_check(monkeypatch):
  """An episode that the check leaves has not ended too early."""
  monkeypatch.setattr(check, '_MOST_STEPS', 5)
  report = check.check(odd_gymnasium.register('Long', goals=True), ['her'])
  assert report.problems == {'her': []}
  assert report.facts['episode'] == '5 steps and more'
  (unseen,) = report.unseen
  assert 'did not end within 5 steps' in unseen
  assert f'Not seen: {unseen}' in report.lines()


def test_episode_that_ends_early():
  report = check.check(
    odd_gymnasium.register('E', goals=True, end_at=6), ['her']
  )
  assert report.problems == {'her': []}
  assert any('ended after 6 of 10 steps' in x for x in report.hints)


def test_warnings_of_the_environment():
  """Those of gymnasium's checker lose their colors, others nothing."""
  report = check.check(odd_gymnasium.register('Old', warning='is old'), ['ppo'])
  assert "gymnasium's check_env: is old" in report.hints


def test_discrete_actions():
  report = check.check('CartPole-v1', ['planet', 'ppo'])
  assert report.problems == {'planet': [], 'ppo': []}
  report = check.check('FrozenLake-v1', ['ppo'])
  assert not report.problems['ppo']


class Drawn(odd_gymnasium.Odd):
  """Draws with a library that all of them share, such as pygame."""

  is_open = False

  def __init__(self, render_mode=None):
    super().__init__(render_mode)
    Drawn.is_open = True

  def render(self):
    assert Drawn.is_open
    return super().render()

  def close(self):
    assert Drawn.is_open, 'closed before'
    Drawn.is_open = False


def test_library_that_all_share():
  """gymnasium's checker closes it twice, which is only a hint."""
  report = check.check(odd_gymnasium.register('D', kind=Drawn), ['planet'])
  assert report.problems == {'planet': []}
  assert any('closed before' in x for x in report.hints)


def test_hint_about_seeds():
  env_id = odd_gymnasium.register('Unseeded', unseeded=True)
  report = check.check(env_id, ['ppo'])
  assert report.problems == {'ppo': []}
  assert 'is non-deterministic' in report.hints[0]


def make_normalized():
  env = gymnasium.wrappers.NormalizeObservation(gymnasium.make('Pendulum-v1'))
  return gymnasium.wrappers.NormalizeReward(env)


def test_hint_about_statistics():
  """Those of wrappers, which a loaded agent would lack."""
  report = check.check(make_normalized, ['ppo'])
  found = [x.split()[0] for x in report.hints if 'statistics' in x]
  assert found == ['NormalizeReward', 'NormalizeObservation']


def test_program(capsys):
  good = odd_gymnasium.register('Good', goals=True)
  assert check_env.run([good, '--for', 'her']) == 0
  assert 'HER: ok' in capsys.readouterr().out
  assert check_env.run([good]) == 0
  assert check_env.run([good, '--for', 'ppo']) == 0
  words = odd_gymnasium.register('Words', words=True)
  assert check_env.run([words, '--for', 'ppo']) == 1
  assert 'Observations must be Box' in capsys.readouterr().out
  assert check_env.run(['Pendulmu-v1']) == 2
  assert 'is unknown' in capsys.readouterr().err


def test_numbers_of_an_info():
  """Lists of different lengths are no numbers, and no reason to fail."""
  info = {'ragged': [[1], [2, 3]], 'size': 2, 'text': 'x', 'row': [1.5, 2]}
  # Arrays in the replay have names.
  info[3] = 4.0
  found = contract.find_numbers(info)
  assert {k: v.tolist() for k, v in found.items()} == {
    'size': [2],
    'row': [1.5, 2],
  }


def test_own_opengl(monkeypatch):
  """In software, it crashes with TensorFlow; PlaNet has separate processes."""
  assert not opengl.is_loaded_in_software()
  monkeypatch.setattr(opengl, 'is_loaded_in_software', lambda: True)
  report = check.check('Pendulum-v1', ['planet', 'ppo'])
  assert 'opens OpenGL by itself' in ' '.join(report.problems['ppo'])
  assert not report.problems['planet']


SUITE = """
from agents.envs import check


def make():
  from dm_control import suite

  return suite.load('cartpole', 'balance')


print(check.check(make, ['planet', 'ppo']).problems)
"""


@pytest.mark.needs('dm_control')
def test_functions_of_the_control_suite():
  """PlaNet gets images; without them, OpenGL stays closed."""
  output = processes.run_python('-c', SUITE)
  assert output.splitlines()[-1] == "{'planet': [], 'ppo': []}"
