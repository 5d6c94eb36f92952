"""One sentence about each mistake of an environment."""

import pytest

from agents.envs import adapters, batch_env, wrappers
from agents.run import errors
from tests.agents.envs import odd_gymnasium


def make(name, render_mode=None):
  env_id = f'{odd_gymnasium.MODULE}:Odd{name}-v0'
  return wrappers.Guard(adapters.make(env_id, render_mode), env_id)


def play(name):
  env = make(name, 'rgb_array')
  env.reset()
  for _ in range(10):
    env.step(env.action_space.sample())
    env.render('rgb_array')


@pytest.mark.parametrize(
  'name, kind, message',
  [
    ('Broken', errors.EnvError, "constructor with KeyError.'no such"),
    (
      'Growing',
      errors.EnvError,
      r'Growing-v0 .* of shape \(4,\) in step 4, but',
    ),
    ('Faulty', errors.EnvError, 'failed in step 5 with ZeroDivisionError'),
    ('NoImage', errors.EnvError, 'NoImage-v0 returns None; with'),
    ('Blind', errors.UsageError, 'takes no render_mode'),
    ('Brokn', errors.UsageError, 'Did you mean: `OddBroken`'),
  ],
)
def test_mistakes(name, kind, message):
  with pytest.raises(kind, match=message) as caught:
    play(name)
  raised = name in ('Broken', 'Faulty')
  details = getattr(caught.value, 'details', '')
  assert details.count('Traceback') == raised
  assert ('/odd_gymnasium.py' in details) == raised


def test_unknown_module():
  with pytest.raises(errors.UsageError, match="No module named 'nowhere'"):
    adapters.make('nowhere:Odd-v0', 'rgb_array')


@pytest.mark.parametrize('workers', [0, 2])
def test_traceback_comes_once(workers):
  """It travels beside the sentence, wherever the environment lives."""
  batch = batch_env.VectorEnv([lambda: make('Faulty')] * 2, workers)
  batch.reset()
  try:
    with pytest.raises(errors.EnvError, match='failed in step 5') as caught:
      for _ in range(5):
        batch.step([batch.action_space.sample()] * 2)
  finally:
    batch.close()
  assert 'Traceback' not in str(caught.value)
  assert caught.value.details.count('Traceback') == 1
