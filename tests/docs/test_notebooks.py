"""Notebooks of the documentation, run in a kernel with fewer steps."""

import os
import shutil

import nbclient
import nbformat
import pytest

from tests import golden

# A line of constants, and what it becomes here.
SHORTER = {
  'ppo': ('STEPS, LOGDIR = 60000,', 'STEPS, LOGDIR = 2000,'),
  'her': ('STEPS, LOGDIR = 5000,', 'STEPS, LOGDIR = 1000,'),
  'planet': (
    'EPISODES, UPDATES, CONTEXT = 9, 1500,',
    'EPISODES, UPDATES, CONTEXT = 2, 3,',
  ),
}


def list_kinds(cell):
  """What a cell shows: the types of its outputs, texts apart."""
  data = [x.get('data', {}) for x in cell.outputs]
  return sorted(y for x in data for y in x if y.startswith('image/'))


@pytest.mark.slow
@pytest.mark.parametrize('name', ['ppo', 'her', 'planet'])
def test_notebook(name, tmp_path, monkeypatch):
  """It shows as many figures as the stored one, in the same cells."""
  docs = tmp_path / 'docs'
  shutil.copytree(f'{golden.ROOT}/docs/notebooks', docs / 'notebooks')
  shutil.copytree(f'{golden.ROOT}/docs/pictures', docs / 'pictures')
  os.symlink(f'{golden.ROOT}/results', tmp_path / 'results')
  notebook = nbformat.read(docs / f'notebooks/{name}.ipynb', 4)
  stored = [list_kinds(x) for x in notebook.cells if x.cell_type == 'code']
  assert 'image/png' in stored[-1]
  constants = notebook.cells[1]
  old, new = SHORTER[name]
  assert old in constants.source
  constants.source = constants.source.replace(old, new)
  monkeypatch.setenv('PYTHONPATH', golden.ROOT)
  resources = {'metadata': {'path': str(docs / 'notebooks')}}
  nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
  shown = [list_kinds(x) for x in notebook.cells if x.cell_type == 'code']
  assert shown == stored


def test_notebook_outside_of_a_checkout(tmp_path, monkeypatch):
  """It says so in a sentence, and starts in any folder of a checkout."""
  path = os.path.join(golden.ROOT, 'docs/notebooks/planet.ipynb')
  code = nbformat.read(path, 4).cells[1].source
  monkeypatch.syspath_prepend(tmp_path)
  for folder in ('', 'docs/notebooks', 'results/agents'):
    monkeypatch.chdir(os.path.join(golden.ROOT, folder))
    found = {}
    exec(code, found)
    assert os.path.isdir(found['AGENT'])
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit, match='is in no checkout of'):
    exec(code, {})
