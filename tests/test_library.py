"""The three systems as one library, as scripts and notebooks use it."""

import pathlib
import subprocess
import sys
import textwrap

import nbclient
import nbformat
import pytest

from agents.run import checkpoint
from tests import golden

SLOW = pytest.mark.slow


def saved_step(folder):
  """Step of the newest checkpoint below a folder."""
  runs = [x.parent for x in pathlib.Path(folder).rglob('model.ckpt-*.index')]
  return max(checkpoint.newest_step(str(x)) for x in runs)


@pytest.mark.parametrize(
  'systems',
  [
    pytest.param(['agents', 'baselines_her'], marks=SLOW),
    pytest.param(['agents', 'baselines_her', 'planet'], marks=SLOW),
  ],
)
def test_script(tmp_path, systems):
  """It ends by itself, with the work of all trainings saved."""
  command = [sys.executable, '-m', 'tests.library_script', str(tmp_path)]
  command += systems
  done = subprocess.run(
    command, cwd=golden.ROOT, timeout=300, capture_output=True, text=True
  )
  assert done.returncode == 0 and 'The end.' in done.stdout, done.stderr
  assert 'Exception' not in done.stderr, done.stderr
  for name in ('other', 'beside'):
    assert saved_step(tmp_path / f'agents-{name}') == 80
    if 'planet' in systems:
      assert saved_step(tmp_path / f'planet-{name}') == 8
    kept = tmp_path / f'baselines_her-{name}' / 'checkpoints'
    assert any(kept.iterdir())


CELL = """
import os, signal, threading
from tests import library_script
import {system} as system

training = library_script.train(system, {folder!r}, steps=10 ** 6)
record = next(training)
print('epoch', record['epoch'])
# As the button of a notebook does.
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
for record in training:
  pass
"""


@pytest.mark.slow
@pytest.mark.parametrize('system', ['baselines_her', 'agents', 'planet'])
def test_interrupted_cell(tmp_path, monkeypatch, system):
  """Another cell continues where the interrupt has come."""
  folder = str(tmp_path)
  after = f"""
    again = library_script.train(system, {folder!r}, steps=10 ** 6)
    print('then', record['epoch'], next(again)['epoch'])
  """
  cells = [CELL.format(system=system, folder=folder), textwrap.dedent(after)]
  notebook = nbformat.v4.new_notebook(
    cells=[nbformat.v4.new_code_cell(x) for x in cells]
  )
  monkeypatch.setenv('PYTHONPATH', golden.ROOT)
  client = nbclient.NotebookClient(notebook, timeout=600, allow_errors=True)
  client.execute()
  first, second = [
    ''.join(x['text'] for x in cell.outputs if x.get('name') == 'stdout')
    for cell in notebook.cells
  ]
  names = [x.get('ename') for x in notebook.cells[0].outputs]
  assert 'epoch 1' in first and 'KeyboardInterrupt' in names
  last, following = map(int, second.split()[1:])
  # The epoch that was interrupted may just have ended.
  assert last < following <= last + 2
