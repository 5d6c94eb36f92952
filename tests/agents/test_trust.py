"""Runs of PPO that come from somebody else are data, not programs."""

import os

import pytest

from agents import configs, runs, train_ppo, utility, visualize_ppo
from agents.run import errors, files
from agents.tools.attr_dict import AttrDict
from tests.agents import hostile, training_runs
from tests.agents.envs import odd_gymnasium


def make_run(folder, **values):
  """Folder of a run whose stored configuration has some plain values."""
  run = os.path.join(folder, 'runs', '1-default')
  config = AttrDict(configs.default(), env='Pendulum-v1')
  utility.save_config(config, run)
  filename = os.path.join(run, 'config.yaml')
  files.write_yaml(filename, {**files.read_yaml(filename), **values})
  training_runs.write_checkpoint(run, 40)
  return run


PROGRAMS = {
  # Without a name, runs of other settings are not even considered.
  'train_ppo': (
    train_ppo.run,
    ['--config=default', '--timestamp=1', '--noenv_processes'],
  ),
  'visualize_ppo': (visualize_ppo.run, ['--noenv_processes']),
}


@pytest.mark.parametrize('name', PROGRAMS)
@pytest.mark.parametrize('index', range(10))
def test_nothing_is_called(tmp_path, monkeypatch, capsys, name, index):
  marker = hostile.plant(str(tmp_path), monkeypatch)
  run = make_run(tmp_path, env=hostile.calls(marker)[index])
  program, args = PROGRAMS[name]
  assert program([f'--logdir={os.path.dirname(run)}', *args]) == 2
  assert not os.path.exists(marker)
  error = capsys.readouterr().err.strip().splitlines()[-1]
  assert error.startswith('Error: ')
  assert "'env'" in error or 'add --trust ' in error


def test_own_functions_with_values_of_the_file(tmp_path):
  """The optimizer is called with the learning rate."""
  precious = tmp_path / 'precious'
  precious.mkdir()
  values = {'optimizer': 'agents.pipeline.session:copy_modules'}
  run = make_run(tmp_path, **values)
  with pytest.raises(errors.UsageError, match='allows in'):
    runs.load(run)
  run = make_run(tmp_path, learning_rate=str(precious))
  with pytest.raises(errors.UsageError, match='learning_rate'):
    runs.load(run)


def test_trusted_modules(tmp_path, monkeypatch, capsys):
  """They count with what they define, not with what they import."""
  marker = hostile.plant(str(tmp_path), monkeypatch)
  run = make_run(tmp_path, env='hostile:anything')
  flags = [f'--logdir={run}', '--noenv_processes']
  assert visualize_ppo.run(flags) == 2
  assert 'add --trust hostile' in capsys.readouterr().err
  assert not os.path.exists(marker)
  trusting = [*flags, '--trust=some.other', '--trust=a,hostile']
  assert visualize_ppo.run(trusting) == 1
  assert "failed in its constructor with ValueError('hostile')" in (
    capsys.readouterr().err
  )
  assert os.path.exists(marker)
  make_run(tmp_path, network='hostile:os.system')
  assert visualize_ppo.run([*flags, '--trust=hostile']) == 2
  assert 'hostile:os.system' in capsys.readouterr().err


def test_typed_ids_of_environments(tmp_path):
  """Who gives --env trusts its module; a stored id is a name like others."""
  env = f'{odd_gymnasium.MODULE}:OddFaulty-v0'
  run = make_run(tmp_path, env=env)
  logdir = os.path.dirname(run)
  with runs.claim('default', logdir, overrides={'env': env}) as claimed:
    assert claimed.config.env == env and claimed.folder == run
  with pytest.raises(errors.UsageError, match='--trust tests'):
    runs.load(run)
