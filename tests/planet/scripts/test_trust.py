"""Runs of PlaNet that come from somebody else are data, not programs."""

import os

import pytest

from agents.run import files
from planet.scripts import evaluate, train
from tests.agents import hostile


@pytest.mark.parametrize('program', ['evaluate', 'train'])
def test_module_of_a_stored_task(tmp_path, monkeypatch, capsys, program):
  """The task was not given again with the command."""
  marker = hostile.plant(str(tmp_path), monkeypatch)
  run = tmp_path / 'runs' / '00001'
  params = {'tasks': ['gym_hostile:Any-v0'], 'isolate_envs': 'none'}
  stored = {'config': 'debug', 'params': params, 'seed': None}
  files.write_yaml(str(run / 'config.yaml'), stored)
  if program == 'evaluate':
    (run / 'model.ckpt-1.index').write_text('')
    args = ['--logdir', str(run), '--checkpoint', 'model.ckpt-1']
    assert evaluate.run(args) == 2
  else:
    args = ['--logdir', str(run.parent), '--config', 'debug', '--num_runs', '1']
    assert train.run(args) == 2
  assert 'add --trust hostile ' in capsys.readouterr().err
  assert not os.path.exists(marker)
