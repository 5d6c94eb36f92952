"""Examples of the documentation, run as a user would, from their folder."""

import glob
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests import golden
from tests.agents import training_runs

SMALL_PPO = (
  '{num_agents: 2, update_every: 2, eval_episodes: 2, max_length: 100, '
  'policy_layers: [8], value_layers: [8], steps: 200}'
)
SMALL_HER = ['--num_timesteps=30', '--n_cycles=1', '--n_test_rollouts=1']
SMALL_HER += ['--n_batches=1', '--batch_size=16', '--hidden=8']
SMALL_SESSION = (
  '{number_epochs: 1, epoch_size: 2, test_win_size: 1, '
  'memory_size_in_chunks: 100}'
)
SMALL_PLANET = (
  '{tasks: ["gym_my_env:PushCart-v0"], action_repeat: 20, image_size: 32, '
  'batch_shape: [2, 3], train_steps: 4, test_steps: 4, max_steps: 4, '
  'num_seed_episodes: 1, test_collects: [], '
  'planner_iterations: 1, planner_horizon: 2, model_size: 8}'
)


def test_readme(tmp_path):
  """Its Python code works, here with a tenth of the steps."""
  text = read(golden.ROOT, 'README.md')
  (code,) = re.findall(r'```python\n(.*?)```', text, re.DOTALL)
  assert len(code.splitlines()) <= 12
  (tmp_path / 'readme.py').write_text(code.replace('5000', '500'))
  lines = run_file(tmp_path, 'readme.py').splitlines()
  assert lines[0].split()[0] == '500'
  assert 0 <= float(lines[-1]) <= 1


@pytest.fixture
def folder(tmp_path):
  """Copy of the folder of the examples."""
  path = str(tmp_path / 'examples')
  shutil.copytree(os.path.join(golden.ROOT, 'docs', 'examples'), path)
  return path


def run(folder, *args):
  """Run a program in a folder; it has to succeed."""
  return run_file(folder, '-m', *args)


def run_file(folder, *args):
  result = subprocess.run(
    [sys.executable, *args],
    cwd=folder,
    env={**os.environ, 'PYTHONPATH': golden.ROOT},
    capture_output=True,
    text=True,
  )
  assert result.returncode == 0, result.stdout + result.stderr
  return result.stdout


def read(folder, name):
  with open(os.path.join(folder, name)) as file_:
    return file_.read()


def test_environment_suits(folder):
  output = run(folder, 'agents.check_env', 'my_env:PushCart-v0')
  assert 'PlaNet: ok' in output and 'PPO: ok' in output
  lines = read(folder, 'my_env.py').splitlines()
  assert len([x for x in lines if x.strip()]) <= 30


@pytest.mark.slow
def test_environment_and_policy_with_ppo(folder):
  args = ['--env=my_env:PushCart-v0', '--logdir=logs', '--config=default']
  small = SMALL_PPO[:-1] + ', network: my_policy:elman}'
  run(
    folder, 'agents.train_ppo', *args, f'--params={small}', '--noenv_processes'
  )
  assert len(training_runs.scores(os.path.join(folder, 'logs'))) == 2
  assert len(read(folder, 'my_policy.py').splitlines()) <= 40


@pytest.mark.slow
def test_parts_of_planet(folder):
  """With the environment; a model and a planner by name need trust."""
  parts = (
    'model: "my_planet:NormalizedRSSM", planner: "my_planet:random_shooting"'
  )
  params = f'{SMALL_PLANET[:-1]}, {parts}}}'
  args = ['--logdir', 'logs', '--config', 'debug', '--params', params]
  run(folder, 'planet.scripts.train', *args)
  logdir = os.path.join(folder, 'logs', '00001')
  assert os.path.exists(os.path.join(logdir, 'DONE'))
  assert glob.glob(os.path.join(logdir, 'train_episodes', '*.npz'))
  play = ['planet.scripts.evaluate', '--logdir', 'logs', '--episodes', '1']
  assert 'return' in run(folder, *play, '--trust', 'my_planet,my_env')
  with pytest.raises(AssertionError, match='a module that you trust'):
    run(folder, *play, '--trust', 'my_env')
  lines = read(folder, 'my_planet.py').splitlines()
  assert len([x for x in lines if x.strip()]) <= 40


@pytest.mark.slow
def test_goal_environment_with_her(folder):
  env = 'my_goal_env:MovePoint-v0'
  output = run(folder, 'agents.check_env', env, '--for', 'her')
  assert 'HER: ok' in output
  run(
    *(folder, 'baselines_her.run', f'--env={env}', '--log_path=logs'),
    *SMALL_HER,
  )
  assert 'test/success_rate' in read(folder, 'logs/progress.csv')


@pytest.mark.slow
def test_parameters_for_the_pipeline(folder):
  args = ['--params', 'my_params', '--cpanel', SMALL_SESSION]
  run(folder, 'agents.pipeline.main', *args, '--session-path', 'sessions')
  (session,) = glob.glob(os.path.join(folder, 'sessions', 'session_*'))
  assert 'my_params:actor' in read(session, 'params.yaml')
  assert os.path.exists(os.path.join(session, 'checkpoints', 'checkpoint-1'))
  # As the example says; what it registers is not known before.
  loading = ['--load-checkpoint', session, '--trust', 'my_params,my_env']
  run(folder, 'agents.pipeline.main', *loading, '--play', '--play-episodes=1')
  videos = os.path.join(session, 'evaluations', '*', 'videos', '0', '*')
  assert len(glob.glob(videos)) == 1
