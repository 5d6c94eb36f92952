"""Runs of PlaNet that come from somebody else are data, not programs."""

import os

import pytest

import planet
from agents.run import checkpoint, files, references
from planet.scripts import evaluate, train
from tests.agents import hostile


@pytest.mark.parametrize(
  'tasks', [['gym_hostile:Any-v0'], ['dummy', 'gym_hostile:Any-v0']]
)
@pytest.mark.parametrize('program', ['evaluate', 'load', 'train'])
@pytest.mark.parametrize('key', ['params', 'values'])
def test_module_of_a_stored_task(
  tmp_path, monkeypatch, capsys, key, program, tasks
):
  """The task was not given again with the command."""
  marker = hostile.plant(str(tmp_path), monkeypatch)
  run = tmp_path / 'runs' / '00001'
  params = {'tasks': tasks, 'isolate_envs': 'none'}
  stored = {'version': 1, 'config': 'debug', 'params': {}, 'seed': None}
  stored[key] = params
  files.write_yaml(str(run / 'config.yaml'), stored)
  monkeypatch.setattr(
    checkpoint, 'find_variables', lambda folder, *unused, **more: str(run / 'x')
  )
  (run / 'x.index').write_text('')
  if program == 'evaluate':
    assert evaluate.run(['--logdir', str(run)]) == 2
  elif program == 'load':
    with pytest.raises(references.NotTrusted, match='add --trust hostile '):
      planet.load(str(run))
  else:
    args = ['--logdir', str(run.parent), '--config', 'debug', '--num_runs', '1']
    assert train.run(args) == 2
  if program != 'load':
    assert 'add --trust hostile ' in capsys.readouterr().err
  assert not os.path.exists(marker)
