"""Where TensorFlow is imported; directions of imports are in pyproject.toml."""

import glob
import importlib.util
import os
import re

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
    'agents.envs.continuous',
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
  """Only `agents.tools.tf1` decides how it is set up, but for the originals."""
  files = list_files('agents', 'planet', 'baselines_her', 'scripts')
  pattern = re.compile(r'^ *(import|from) tensorflow\b', re.M)
  found = {x for x in files if pattern.search(read(x))}
  assert found == {
    'agents/tools/tf1.py',
    *(f'scripts/comparison/{x}_original.py' for x in ('her', 'planet', 'ppo')),
  }


def test_functions_with_the_names_of_their_files():
  """They are imported from the package, so that it keeps the function.

  Packages that load nothing early cannot import such functions themselves,
  and importing the file binds the module to the name in the package.
  """
  pattern = re.compile(r'from agents\.tools\.(simulate|count_weights) import')
  files = list_files('agents', 'planet', 'baselines_her', 'scripts', 'tests')
  # For type checkers.
  files.remove('agents/tools/__init__.py')
  files.remove('tests/test_imports.py')
  assert not [x for x in files if pattern.search(read(x))]


def test_shell_scripts_import_what_exists():
  """Python within shell scripts is seen by no other test."""
  text = read(os.path.join('scripts', 'setup.sh'))
  found = re.findall(r'from ([\w.]+) import (\w+)', text)
  assert found
  for package, name in found:
    assert importlib.util.find_spec(f'{package}.{name}'), (package, name)
