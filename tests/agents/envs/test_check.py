"""What `agents.check_env` finds in environments that make mistakes."""

import re

import pytest

from agents import check_env
from agents.envs import check
from tests.agents.envs import odd_gymnasium


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
    (dict(shape_at=2), 'ppo', r'step 2 has shape \(4,\) .*its space is .*3'),
    (dict(reward=float('inf')), 'ppo', 'reward in step 1 is infinite'),
    (dict(reward=[1.0, 2.0]), 'ppo', r'reward in step 1 has shape \(2,\)'),
    (
      dict(image='none'),
      'planet',
      'render of .* returns None; .*observations: ve',
    ),
    (dict(image='float32'), 'planet', 'render returns float32'),
    (dict(goals=True, end_at=6), 'her', 'ended after 6 of 10 steps'),
    (
      dict(goals=True, other_reward=True),
      'her',
      'compute_reward returns .* for a step whose reward',
    ),
    (dict(), 'her', 'observations must be dictionaries'),
    (dict(kind=odd_gymnasium.Blind), 'planet', 'created with render_mode='),
  ],
)
def test_mistakes(mistake, system, sentence):
  env_id = odd_gymnasium.register('Wrong', **mistake)
  report = check.check(env_id, [system])
  (found,) = report.problems[system]
  assert re.search(sentence, found), found


def test_longer_than_the_check(monkeypatch):
  """An episode that the check leaves has not ended too early."""
  monkeypatch.setattr(check, '_MOST_STEPS', 5)
  report = check.check(odd_gymnasium.register('Long', goals=True), ['her'])
  assert report.problems == {'her': []}
  assert report.facts['episode'] == '5 steps and more'


def test_warnings_of_the_environment():
  """Those of gymnasium's checker lose their colours, others nothing."""
  report = check.check(odd_gymnasium.register('Old', warning='is old'), ['ppo'])
  assert "gymnasium's check_env: is old" in report.hints


def test_discrete_actions():
  report = check.check('CartPole-v1', ['planet', 'ppo'])
  assert report.problems == {'planet': [], 'ppo': []}
  report = check.check('FrozenLake-v1', ['ppo'])
  assert 'one-hot vector' in report.problems['ppo'][0]


def test_hint_about_seeds():
  env_id = odd_gymnasium.register('Unseeded', unseeded=True)
  report = check.check(env_id, ['ppo'])
  assert report.problems == {'ppo': []}
  assert 'is non-deterministic' in report.hints[0]


def test_program(capsys):
  good = odd_gymnasium.register('Good', goals=True)
  assert check_env.run([good, '--for', 'her']) == 0
  assert 'HER: ok' in capsys.readouterr().out
  assert check_env.run([good]) == 0
  assert check_env.run([good, '--for', 'ppo']) == 1
  assert check_env.run(['Pendulmu-v1']) == 2
  assert 'is unknown' in capsys.readouterr().err
