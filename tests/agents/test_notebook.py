"""PPO in a notebook: by its flags, and as a library."""

import os

import nbclient
import nbformat
import pytest

from agents import utility
from tests import golden
from tests.agents import training_runs

BY_FLAGS = """
from agents import train_ppo
from agents.tools.tf1 import tf

flags = tf.app.flags
flags.DEFINE_string('logdir', {logdir!r}, 'Folder of runs.')
flags.DEFINE_string('timestamp', '1', 'Time in the name of the run.')
flags.DEFINE_string('config', 'default', 'Name of the configuration.')
flags.DEFINE_bool('env_processes', False, 'Step elsewhere.')
try:
  tf.app.run(train_ppo.main, argv=['notebook'])
except SystemExit as end:
  print('code', end.code)
"""
AS_A_LIBRARY = """
from agents import configs
from agents.tools import AttrDict

config = AttrDict(configs.default(), env='Pendulum-v1', **{settings!r})
scores = list(train_ppo.train(config, env_processes=False))
print(len(scores), 'scores')
"""


@pytest.mark.slow
def test_recipes(tmp_path, monkeypatch):
  """The flags and their defaults belong to the notebook."""
  run = str(tmp_path / '1-default')
  utility.save_config(training_runs.config(), run)
  settings = {**training_runs.SMALL, 'steps': 40}
  cells = [
    BY_FLAGS.format(logdir=str(tmp_path)),
    AS_A_LIBRARY.format(settings=settings),
  ]
  notebook = nbformat.v4.new_notebook(
    cells=[nbformat.v4.new_code_cell(x) for x in cells]
  )
  monkeypatch.setenv('PYTHONPATH', golden.ROOT)
  nbclient.NotebookClient(notebook, timeout=600).execute()
  first, second = [
    ''.join(x.get('text', '') for x in cell.outputs) for cell in notebook.cells
  ]
  assert 'code None' in first and 'eval, 80 environment steps.' in first
  assert len(training_runs.scores(tmp_path)) == 4
  assert os.path.exists(os.path.join(run, 'model.ckpt-160.index'))
  assert '2 scores' in second
