"""Where TensorFlow is imported; directions of imports are in pyproject.toml."""

import glob
import importlib.util
import os
import re

import pytest

from tests import golden, processes


def read(path):
  with open(os.path.join(golden.ROOT, path)) as file_:
    return file_.read()


def list_files(*folders):
  """Paths of all Python files, relative to the root of the project."""
  files = []
  for folder in folders:
    pattern = os.path.join(golden.ROOT, folder, '**', '*.py')
    files += glob.glob(pattern, recursive=True)
  return sorted(os.path.relpath(x, golden.ROOT) for x in files)


def module_name(path):
  return path.removesuffix('.py').replace('/', '.').removesuffix('.__init__')


def list_light_modules():
  """Modules that have to stay free of TensorFlow when they are imported."""
  return [
    'agents',
    'agents.tools',
    'agents.tools.wrappers',
    'agents.envs.hosts',
    'agents.tools.batch_env',
    'agents.envs.vector',
    'agents.envs.batch_env',
    'agents.tools.continuous',
    'agents.tools.mock_environment',
    'agents.envs.adapters',
    'agents.envs.video',
    'agents.run.schema',
    'agents.run.flags',
    'agents.configs',
    'baselines_her.settings',
    'planet.scripts.parameters',
    'agents.pipeline',
    'agents.pipeline.main',
    'agents.pipeline.gym_explorer',
    'agents.pipeline.memory',
    'agents.pipeline.visdom_mirror',
    'planet',
    'planet.control',
    'planet.control.random_episodes',
    'planet.control.wrappers',
    *[module_name(x) for x in list_files('planet/envs')],
    'planet.scripts',
    'planet.scripts.train',
    'planet.scripts.evaluate',
    'planet.scripts.plot',
    'baselines_her.plot',
    'scripts.plot_scores',
    'tests.scripted_envs',
  ]


def test_tensorflow_is_not_loaded_early():
  """Packages of workers load their names when these are used.

  Workers of environments import these modules, and software OpenGL crashes in
  a process that has TensorFlow. TensorFlow does not load Keras; users may.
  """
  modules = list_light_modules()
  assert 'planet.envs.suite' in modules
  code = '\n'.join(
    ['import importlib', 'import sys']
    + [
      f'importlib.import_module({name!r})\n'
      f'assert "tensorflow" not in sys.modules, {name!r}'
      for name in modules
    ]
    + ['import agents.tools.tf1', 'assert "keras" not in sys.modules']
    + ['import keras', 'print("done")']
  )
  assert processes.run_python('-c', code).split() == ['done']


def test_tensorflow_is_imported_in_one_place():
  """Only `agents.run.tf1` decides how it is set up, but for the originals."""
  files = list_files('agents', 'planet', 'baselines_her', 'scripts')
  pattern = re.compile(r'^ *(import|from) tensorflow\b', re.M)
  found = {x for x in files if pattern.search(read(x))}
  assert found == {'agents/run/tf1.py'}


def test_shell_scripts_import_what_exists():
  """Python within shell scripts is seen by no other test."""
  text = read(os.path.join('scripts', 'setup.sh'))
  found = re.findall(r'from ([\w.]+) import (\w+)', text)
  assert found
  for package, name in found:
    assert importlib.util.find_spec(f'{package}.{name}'), (package, name)


# Runs a session of HER with one update, and prints what this has imported.
_SESSION = """
import json, os, runpy, sys
root, path = sys.argv[1:]
panel = ('number_epochs', 'epoch_size', 'n_batches', 'n_test_rollouts')
sys.argv[1:] = ['--params', 'baselines_her.params.fetch_reach']
sys.argv += ['--session-path', path]
sys.argv += ['--cpanel', json.dumps(dict.fromkeys(panel, 1))]
try:
  runpy.run_module('scripts.main', run_name='__main__')
except SystemExit as error:
  assert not error.code, error.code
files = [getattr(x, '__file__', None) for x in list(sys.modules.values())]
files = {os.path.relpath(x, root) for x in files if x and x.startswith(root)}
print('FILES', *files, 'scripts/main.py')
"""


@pytest.mark.slow
def test_a_session_of_her_imports_what_it_uses(tmp_path):
  """Not PPO, other environments, or what environments need elsewhere."""
  output = processes.run_python('-c', _SESSION, golden.ROOT, str(tmp_path))
  files = output.rpartition('FILES ')[2].split()
  files = [x for x in files if not x.startswith('.venv')]
  # Packages have no code, and load their names when these are used.
  modules = [x for x in files if not x.endswith('__init__.py')]
  assert 'baselines_her/ddpg.py' in modules
  assert len(modules) <= 74, sorted(modules)
