"""Sessions that come from somebody else are data, not programs."""

import os

import pytest

from agents.pipeline import main
from agents.pipeline.loader import Loader
from agents.run import errors, files
from tests import processes
from tests.agents import hostile
from tests.agents.pipeline.test_session import load, start


@pytest.fixture(scope='module')
def session(tmp_path_factory):
  """Session with a single checkpoint."""
  folder = tmp_path_factory.mktemp('trust')
  assert start(folder, '--create-session-only') == 0
  return folder / 'all' / 'run'


def explore(**env):
  """Parts of the explorers of an environment."""
  name = 'agents.pipeline.gym_explorer.GymExplorer'
  args = {'env': env, 'n_steps': 1, 'processes': 0, 'record': False}
  part = {'name': name, 'args': args}
  return {'explorer': dict.fromkeys(('train', 'test', 'eval'), part)}


def attacks(marker):
  """Parts of trees of parameters that would create the marker."""
  touch = {'command': f'touch {marker}'}
  recorder = {'name': 'agents.envs.recorder.RecordEpisodes'}
  recorder['args'] = {'paths': [marker]}
  ppo = {'name': 'agents.pipeline.ppo.PPOAgent'}
  env = hostile.calls(marker)
  return {
    'runner': {'runner': {'name': 'hostile.anything'}},
    'memory': {'memory': {'train': {'name': 'hostile.anything'}}},
    'agent': {'agents': {'mean': {'name': 'hostile.anything'}}},
    'explorer': explore(constructor='os.system', kwargs=touch),
    'attribute': explore(
      constructor='agents.pipeline.session.os', kwargs=touch
    ),
    'ours': explore(
      constructor='agents.run.files.check_writable',
      kwargs={'logdir': marker},
    ),
    'base': {'memory': {'train': {'name': 'agents.pipeline.logs.Logger'}}},
    'registers': explore(from_module='hostile', name='Pendulum-v1'),
    'numpy': explore(from_module='numpy.f2py.__main__', name='Pendulum-v1'),
    'id': explore(name='hostile:Any-v0'),
    'wrapper': explore(name='Pendulum-v1', wrappers=[{'name': 'hostile.any'}]),
    'recorder': explore(name='Pendulum-v1', wrappers=[recorder]),
    'reference': {'agents': {'mean': {**ppo, 'args': {'config': env[-2]}}}},
    'policy': {
      'agents': {'mean': {**ppo, 'policy': {'name': 'hostile.anything'}}}
    },
    'sampler': {
      'agents': {
        'mean': {
          **ppo,
          'sampler': {
            'name': 'agents.pipeline.samplers.Compose',
            'args': {'functions': [{'reference': 'os:system'}]},
          },
        }
      }
    },
    'partial': {
      'agents': {'mean': {**ppo, 'args': {'config': {'network': env[0]}}}}
    },
  }


@pytest.mark.parametrize('flag', ['--resume', '--play'])
@pytest.mark.parametrize('name', attacks(''))
def test_nothing_is_called(session, tmp_path, monkeypatch, capsys, name, flag):
  marker = hostile.plant(str(tmp_path), monkeypatch)
  filename = str(session / 'checkpoints' / 'checkpoint-0' / 'runner.yaml')
  stored = files.read_yaml(filename)
  # Whoever exchanges a file can exchange its size, too.
  (session / 'checkpoints' / 'checkpoint-0' / 'COMPLETE').write_text('{}')
  changed = {**stored['params'], **attacks(marker)[name]}
  try:
    files.write_yaml(filename, {**stored, 'params': changed})
    assert load(session, flag) == 2
  finally:
    files.write_yaml(filename, stored)
  assert not os.path.exists(marker)
  error = capsys.readouterr().err.strip().splitlines()[-1]
  assert error.startswith('Error: ') and 'add --trust ' in error


def test_own_modules_are_named(session, capsys):
  """Those of a session that is loaded, once."""
  args = ['--load-checkpoint', str(session), '--play', '--play-episodes', '1']
  assert main.entrypoint(args) == 2
  assert 'add --trust tests.agents.pipeline.toy ' in capsys.readouterr().err
  assert main.entrypoint([*args, '--trust', 'a,tests.agents']) == 0


def test_copies_of_modules(session):
  """Only those that are named are imported, however many there are."""
  (session / 'modules' / 'evil.py').write_text('')
  (session / 'modules' / 'agents' / 'copied.py').write_text('')
  with pytest.raises(errors.UsageError, match='those that you trust'):
    Loader(str(session)).activate_modules()
  with pytest.raises(errors.UsageError, match='agents'):
    Loader(str(session)).activate_modules('agent')
  code = f"""
import importlib.util
from agents.pipeline.loader import Loader
Loader({str(session)!r}).activate_modules('agents')
print(importlib.util.find_spec('evil'))
import agents.copied
"""
  assert processes.run_python('-c', code) == 'None\n'
