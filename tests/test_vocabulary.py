"""What `--help` lists, and flags that mean the same in all programs."""

import ast
import os
import subprocess
import sys

import pytest

from agents import configs
from agents.run import errors, flags
from baselines_her import run
from planet.scripts import presets, table
from tests import golden


def read_programs():
  """Return the names of all console scripts, and what each calls."""
  with open(os.path.join(golden.ROOT, 'setup.py')) as file_:
    tree = ast.parse(file_.read())
  name = 'PROGRAMS'
  (table,) = (
    ast.literal_eval(node.value)
    for node in tree.body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
  )
  return table


def list_programs():
  """Return the modules of all console scripts."""
  return sorted({x.partition(':')[0] for x in read_programs().values()})


def show_help(module, *args):
  """Return the output of `--help`; fails if that needs TensorFlow."""
  code = (
    'import runpy, sys\n'
    "sys.modules['tensorflow'] = None\n"
    'sys.argv[0] = "program"\n'
    f'runpy.run_module({module!r}, run_name="__main__")\n'
  )
  result = subprocess.run(
    [sys.executable, '-c', code, *args, '--help'],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
    timeout=60,
  )
  assert result.returncode == 0, result.stderr
  return result.stdout


@pytest.mark.parametrize('module', list_programs())
def test_help_needs_no_tensorflow(module):
  assert len(show_help(module)) > 200


def test_help_of_planet_lists_tasks_and_configurations():
  words = ' '.join(show_help('planet.scripts.train').split())
  for name, row in table.TABLE.items():
    assert f' {name} {row.action_repeat} ' in words
  for name in ('debug', 'cpu', 'carla_cpu'):
    for key, value in presets.PRESETS[name].items():
      assert f'{key} {value}' in words
  assert 'action repeat in simulator steps' in words


def test_help_of_ppo_lists_configurations():
  words = ' '.join(show_help('agents.train_ppo').split())
  for name in configs.CHOICES:
    assert callable(getattr(configs, name)) and f' {name} ' in words
  assert 'env HalfCheetahBulletEnv-v0, max_length 1000, steps 1e+08' in words


def test_table_of_ppo_is_complete():
  """Every configuration sets what the table says."""
  assert all(callable(getattr(configs, name)) for name in configs.CHOICES)
  for name in ('pybullet_pendulum', 'pybullet_humanoid', 'pybullet_minitaur'):
    made = getattr(configs, name)()
    assert {k: made[k] for k in configs.CHOICES[name]} == configs.CHOICES[name]


def test_help_of_her_shows_the_values_that_will_be_used():
  """Those of the environment, and those on the command line."""
  pytest.importorskip('gymnasium_robotics')

  def find(*argv):
    rows = (
      x.split() for x in show_help('baselines_her.run', *argv).splitlines()
    )
    return {x[0]: x[1] for x in rows if len(x) > 1}

  reach, push = find(), find('--env=FetchPush-v1', '--lr=0.5', '--gamma=0.9')
  assert reach['n_cycles'] == '10' and push['n_cycles'] == '50'
  assert reach['T'] == '50' and reach['gamma'] == '0.98'
  assert push['gamma'] == '0.9' and push['Q_lr'] == push['pi_lr'] == '0.5'
  assert find('--env=Nothing-v0')['T'] == '-'
  assert find('--hiden=3')['hidden'] == '256'


def read(*words):
  """Flags and settings of a command of HER."""
  with flags.parsed('her-train', '', run._define_all, words):
    return run._read()


def test_logdir_and_params_of_her():
  """As the other systems have them, beside the original's spelling."""
  for words in (['--logdir=x'], ['--logdir', 'x'], ['--log_path=x']):
    assert read(*words)[0].log_path == 'x'
  words = ['--params={n_cycles: 3, hidden: 5, gamma: 0.5}', '--hidden=7']
  _, given = read(*words)
  assert given == {'n_cycles': 3, 'hidden': 7, 'gamma': 0.5}
  for text, message in (('3', 'give a mapping'), ('{hiden: 3}', 'hidden')):
    with pytest.raises(errors.UsageError, match=message):
      read('--params', text)
