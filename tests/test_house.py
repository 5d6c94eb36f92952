"""Rules of the house that can be read off the source code.

Directions of imports, types of parameters, and where TensorFlow may be loaded.
"""

import ast
import functools
import glob
import os
import re

from tests import golden, processes

# What all systems build on: what TensorFlow graphs need, what lies between
# simulators and graphs, and what surrounds a run.
SHARED = [
  'agents.tools',
  'agents.envs',
  'agents.run',
  'agents.utility',
  'agents.evaluation',
]
# What parts of the project may import of others. Longer names come first.
DIRECTIONS = {
  'agents.run': ['agents.tools'],
  'agents.envs': ['agents.run'],
  'agents.tools': ['agents.envs', 'agents.run'],
  'agents.utility': SHARED,
  # Adapters to PPO, and parameters, which name what they use.
  'agents.pipeline.ppo': ['agents'],
  'agents.pipeline.params': ['agents'],
  'agents.pipeline': SHARED,
  'agents.configs': [
    *SHARED,
    'agents.networks',
    'agents.ppo',
  ],
  'agents.networks': SHARED,
  'agents.ppo': ['agents.networks', *SHARED],
  'agents': ['agents'],
  'planet.tools': SHARED,
  'planet.models': ['planet.tools', *SHARED],
  'planet.networks': ['planet.tools', *SHARED],
  'planet.control': ['planet.envs', 'planet.tools', *SHARED],
  'planet.envs': SHARED,
  'planet.training': [
    'planet.models',
    'planet.networks',
    'planet.control',
    'planet.envs',
    'planet.tools',
    *SHARED,
  ],
  'planet': ['planet', *SHARED],
  'baselines_her': ['baselines_her', 'agents.pipeline', *SHARED],
  'scripts': ['agents', 'planet', 'baselines_her'],
}
OURS = ('agents', 'planet', 'baselines_her', 'scripts', 'tests')


def list_files(*folders):
  """Paths of all Python files, relative to the root of the project."""
  files = []
  for folder in folders:
    pattern = os.path.join(golden.ROOT, folder, '**', '*.py')
    files += glob.glob(pattern, recursive=True)
  return sorted(os.path.relpath(x, golden.ROOT) for x in files)


@functools.cache
def parse(path):
  with open(os.path.join(golden.ROOT, path)) as file_:
    return ast.parse(file_.read())


def module_name(path):
  return path.removesuffix('.py').replace('/', '.').removesuffix('.__init__')


def is_module(name):
  path = os.path.join(golden.ROOT, *name.split('.'))
  return os.path.isdir(path) or os.path.exists(path + '.py')


def find_imports(path):
  """Names of our modules that a file imports, also lazily."""
  for node in ast.walk(parse(path)):
    names = []
    if isinstance(node, ast.Import):
      names = [x.name for x in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert not node.level, f'{path} has a relative import'
      names = [f'{node.module}.{x.name}' for x in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
      # Lazy exports and references to modules that are loaded by name.
      if re.fullmatch(r'\w+(\.\w+)+(:\w+)?', node.value):
        name = node.value.partition(':')[0]
        names = [name] if is_module(name) else []
    yield from (x for x in names if x.split('.')[0] in OURS)


def belongs_to(name, part):
  return f'{name}.'.startswith(f'{part}.')


def find_part(name):
  return next(x for x in DIRECTIONS if belongs_to(name, x))


def test_directions():
  """Imports go down: scripts, training, models, tools; see DIRECTIONS.

  Parts may import themselves. Nothing imports `scripts` or `tests`.
  """
  files = list_files('agents', 'planet', 'baselines_her', 'scripts')
  assert len(files) > 80
  wrong, count = [], 0
  for path in files:
    part = find_part(module_name(path))
    allowed = DIRECTIONS[part] + [part]
    for name in find_imports(path):
      count += 1
      if not any(belongs_to(name, x) for x in allowed):
        wrong.append(f'{path} imports {name}')
  assert not wrong
  assert count > 200


def test_directions_are_noticed():
  """The test above would see these."""
  assert find_part('planet.tools.mask') == 'planet.tools'
  assert find_part('planet.scripts.train') == 'planet'
  assert find_part('agents.train_ppo') == 'agents'
  imports = set(find_imports('agents/ppo/__init__.py'))
  assert 'agents.ppo.memory' in imports and 'agents.tools.lazy' in imports
  assert not belongs_to('planet.toolset', 'planet.tools')


def find_circles(*folders):
  """Sets of modules that import each other, also lazily or through others."""
  modules = {module_name(x): x for x in list_files(*folders)}
  reached = {}
  for name, path in modules.items():
    # What is imported may be a module or something in it.
    found = {
      x if x in modules else x.rpartition('.')[0] for x in find_imports(path)
    }
    reached[name] = (found & set(modules)) - {name}
  for middle in modules:
    for name in modules:
      if middle in reached[name]:
        reached[name] |= reached[middle]
  circles = {
    frozenset(x for x in others if name in reached[x])
    for name, others in reached.items()
    if name in others
  }
  return [sorted(x) for x in circles]


def test_no_circles():
  """Files can be read from the bottom to the top."""
  assert not find_circles('agents', 'planet', 'baselines_her')


@functools.cache
def list_public_functions():
  """Tuples of the full name and the node of functions for other files.

  Those within functions and private classes do not count.
  """
  found = []

  def visit(body, prefix):
    for node in body:
      if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
        visit(node.body, f'{prefix}.{node.name}')
      elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if not node.name.startswith('_') or node.name == '__init__':
          found.append((f'{prefix}.{node.name}', node))

  for path in list_files('agents', 'planet', 'baselines_her', 'scripts'):
    visit(parse(path).body, module_name(path))
  return found


def list_parameters(node):
  """Named parameters of a function, without `self` and `cls`."""
  given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
  return [x for x in given if x.arg not in ('self', 'cls')]


def is_typed(node):
  """Whether all parameters have types, and the result, except of `__init__`."""
  full = all(x.annotation for x in list_parameters(node))
  return full and (node.returns is not None or node.name == '__init__')


def test_public_functions_are_typed():
  """At least 90 %; the types are checked by mypy, see `scripts/test.sh`."""
  functions = list_public_functions()
  untyped = [name for name, node in functions if not is_typed(node)]
  assert len(functions) > 1000
  assert len(untyped) <= 0.1 * len(functions), untyped


def test_files_have_docstrings():
  for path in list_files(*OURS):
    assert ast.get_docstring(parse(path)), path


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
  a process that has TensorFlow.
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
    + ['print("done")']
  )
  assert processes.run_python('-c', code).split() == ['done']


def test_functions_with_the_names_of_their_files():
  """They are imported from the package, so that it keeps the function.

  Packages that load nothing early cannot import such functions themselves,
  and importing the file binds the module to the name in the package.
  """
  found = [
    f'{path} imports {name}'
    for path in list_files(*OURS)
    if path != 'agents/tools/__init__.py'  # For type checkers.
    for name in find_imports(path)
    if re.match(r'agents\.tools\.(simulate|count_weights)\.', name)
  ]
  assert not found


def test_tensorflow_is_imported_in_one_place():
  """Only `agents.tools.tf1` decides how it is set up."""
  found = set()
  for path in list_files('agents', 'planet', 'baselines_her', 'scripts'):
    for node in ast.walk(parse(path)):
      names = []
      if isinstance(node, ast.Import):
        names = [x.name for x in node.names]
      elif isinstance(node, ast.ImportFrom):
        names = [node.module]
      if any(belongs_to(name, 'tensorflow') for name in names):
        found.add(path)
  assert found == {'agents/tools/tf1.py'}


def test_shell_scripts_import_what_exists():
  """Python within shell scripts is seen by no other test."""
  with open(os.path.join(golden.ROOT, 'scripts', 'setup.sh')) as file_:
    found = re.findall(r'from ([\w.]+) import (\w+)', file_.read())
  assert found
  for package, name in found:
    assert is_module(f'{package}.{name}'), (package, name)
