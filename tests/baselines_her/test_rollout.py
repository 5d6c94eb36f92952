"""Episodes in environments that do what they must not."""

import re

import gymnasium
import numpy as np
import pytest

from agents.envs import contract
from agents.run import errors
from baselines_her import config, envs, play, rollout, run, vec_env
from tests.baselines_her import odd_envs, test_programs

MODULE = 'tests.baselines_her.odd_envs'
DIMS = {'o': 2, 'g': 2, 'u': 1, 'info_is_success': 1}


class Policy:
  """Does nothing; has only what the original calls."""

  def get_actions(self, o, *unused_args, **unused_kwargs):
    return np.zeros((len(o), 1))


class Logger:
  """Keeps the warnings."""

  def __init__(self):
    self.lines = []

  def warn(self, text):
    self.lines.append(text)


def make_worker(name, T=odd_envs.LIMIT, number=2, dims=DIMS):
  env = vec_env.DummyVecEnv([lambda: envs.make(f'{MODULE}:{name}-v0')] * number)
  return rollout.RolloutWorker(env, Policy(), dims, Logger(), T, number)


@pytest.mark.parametrize(
  'name, T, message',
  [
    ('NaN', 5, 'NaN-v0 returned NaN as observation in step 2, in 10 episodes'),
    ('NaNGoal', 5, 'NaN as desired_goal in reset'),
    ('NaNStep', 5, 'NaN reward encountered in .*NaNStep-v0'),
    ('NaNSuccess', 5, 'NaN success encountered in .*NaNSuccess-v0'),
    ('Fine', 4, 'does not end an episode in step 4, but .* most T = 4 steps'),
    ('Growing', 5, r'observation of shape \(3,\), but its .*\(2,\)'),
    ('Silent', 5, "info\\['is_success'\\] = None in step 2"),
  ],
)
def test_refused(name, T, message):
  """One sentence names environment, step, and what is wrong."""
  worker = make_worker(name, T)
  with pytest.raises(errors.EnvError, match=message):
    worker.generate_rollouts()
  repeated = 10 if name in ('NaN', 'NaNGoal') else 0
  assert len(worker.logger.lines) == repeated
  assert all('NaN caught' in x for x in worker.logger.lines)


def test_success_in_the_last_step_only():
  """As `evaluate` reads it, and those who only look at the end of episodes."""
  dims = {k: v for k, v in DIMS.items() if not k.startswith('info_')}
  worker = make_worker('Late', dims=dims)
  worker.generate_rollouts()
  assert worker.current_success_rate() == 1


def test_environments_that_differ():
  """One of two environments changes the shape of its observations."""
  worker = make_worker('Growing')
  worker.venv[0].reset = worker.venv[1].reset
  worker.venv[0].step = make_worker('Fine').venv[0].step
  with pytest.raises(errors.EnvError, match=r'shape \(3,\), but its'):
    worker.generate_rollouts()


def test_nan_now_and_then():
  """Episodes with NaN are played again, as in the original."""
  worker = make_worker('NaN')
  for env in worker.venv:
    env.unwrapped.oddity = ''
  bad = worker.venv[0].unwrapped
  resets, reset = [], bad.reset

  def count(**kwargs):
    resets.append(bad)
    bad.oddity = 'NaN' if len(resets) < 10 else ''
    return reset(**kwargs)

  bad.reset = count
  assert worker.generate_rollouts()['o'].shape == (2, 5, 2)
  assert len(worker.logger.lines) == 9


def test_constructor_that_fails():
  with pytest.raises(errors.EnvError, match='constructor with') as caught:
    envs.make(f'{MODULE}:Broken-v0')
  assert caught.value.details.count('Traceback') == 1
  assert "raise KeyError('no such robot')" in caught.value.details


@pytest.mark.parametrize(
  'name, message',
  [
    ('Fine', 'returns None; with'),
    ('Blind', 'takes no render_mode'),
  ],
)
def test_videos_of_nothing(name, message):
  with pytest.raises((errors.UsageError, errors.EnvError), match=message):
    env = vec_env.make_vec_env(f'{MODULE}:{name}-v0', '', 1, 0, render='human')
    env.close()
    env = vec_env.make_vec_env(
      f'{MODULE}:{name}-v0', '', 1, 0, render='rgb_array'
    )
    env.reset()
    env.get_images()


def test_other_video_formats(capsys):
  assert play.run([__file__, '--video', 'x.avi']) == 2
  assert "'x.avi'; use a name that ends in .mp4" in capsys.readouterr().err
  assert play.run([__file__, '--video', 'x.mp4', '--render=0']) == 2
  assert '--video is x.mp4, but --render=0' in capsys.readouterr().err


@pytest.mark.parametrize(
  'name, message',
  [
    ('NaN', 'returned NaN as observation in step 2'),
    ('Broken', 'constructor with KeyError'),
    ('Leaving', r'failed in step 2 with SystemExit\(0\)'),
    ('Losing', 'an observation without achieved_goal in step 2'),
    ('Shrinking', r'compute_reward .*Shrinking-v0 returns shape \(3,\)'),
  ],
)
def test_programs_end(name, message, tmp_path, capfd):
  """Exit code 1, one sentence, and at most the environment's traceback."""
  words = [f'--env={MODULE}:{name}-v0', f'--log_path={tmp_path}']
  words += test_programs.SHORT
  if name == 'Leaving':
    # It could end the tests as well.
    _, error = test_programs.run(*words, code=1)
  else:
    assert run.run(['program', *words]) == 1
    error = capfd.readouterr().err
  assert re.search(f'Error: .*{message}', error)
  assert error.count('Traceback') == (name in ('Broken', 'Leaving'))


def test_info_of_any_kind():
  """Text and dictionaries in it are not stored; success may be an array."""
  env = envs.make(f'{MODULE}:Talking-v0')
  assert config.find_dims(env) == DIMS
  contract.check_spaces(env, 'Talking-v0', 'her')
  episode = make_worker('Talking').generate_rollouts()
  assert episode['info_is_success'].shape == (2, odd_envs.LIMIT - 1, 1)


@pytest.mark.parametrize('number', [1, 2])
def test_environments_that_raise(number):
  """The error names environment and step, in processes as well."""
  name = f'{MODULE}:Raising-v0'
  env = vec_env.make_vec_env(name, 'robotics', number, 0)
  env.reset()
  env.step(np.zeros((number, 1)))
  with pytest.raises(errors.EnvError, match='Raising-v0 failed in step 2'):
    env.step(np.zeros((number, 1)))
  env.close()


def test_ids_of_the_main_program(monkeypatch):
  """Other processes know what only this one has registered."""
  spec = gymnasium.spec('Fine-v0')
  monkeypatch.setitem(gymnasium.registry, 'Local-v0', spec)
  env = vec_env.make_vec_env('Local-v0', 'robotics', 2, 0)
  assert env.reset()['observation'].shape == (2, 2)
  env.close()
