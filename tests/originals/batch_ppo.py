"""Compare PPO with the version of google-research/batch-ppo in PyBullet.

This project follows that version. Later versions have one loss for policy and
value.
"""

import ast
import os
import subprocess
from collections.abc import Iterator

from tests.originals import ppo
from tests.originals.cases import Case

# In all versions, and not in this project.
ORIGINAL = 'agents/tools/simulate_test.py'
COMMIT = 'e7a2035'  # 2017-11-15
# Files that are renamed in the wheel.
_NAMES = {
  'scripts/train.py': 'train_ppo.py',
  'scripts/visualize.py': 'visualize_ppo.py',
}
# Files with intended differences: environments, arguments of a YAML reader.
_OTHER = 'scripts/configs.py', 'scripts/utility.py'


def run(side: str, clone: str, out: str) -> None:
  """Train with one side; checks out the version to run from the clone."""
  if side == 'ours':
    return ppo.run(side, clone, out)
  import pybullet_envs

  wheel = os.path.dirname(pybullet_envs.__file__)
  old = os.path.join(out, COMMIT)
  subprocess.run(['git', 'clone', '-q', clone, old], check=True)
  subprocess.run(['git', '-C', old, 'checkout', '-q', COMMIT], check=True)
  differ = _find_other_files(os.path.join(old, 'agents'), wheel)
  with open(os.path.join(out, 'files.txt'), 'w') as file_:
    file_.writelines(f'{k} {v}\n' for k, v in differ.items())
  return ppo.run(side, os.path.dirname(wheel), out, old)


def compare(out: str) -> Iterator[Case]:
  """Yield a case for the code, and one per phase."""
  with open(os.path.join(out, 'files.txt')) as file_:
    differ = [int(x.split()[1]) for x in file_]
  yield Case('files that differ from the wheel', len(differ), sum(differ), 0.0)
  yield from ppo.compare(out)


def _find_other_files(clone, wheel):
  """Compare files of the clone and the wheel, ignoring imports."""
  found = {}
  for folder, _, names in os.walk(clone):
    for name in names:
      path = os.path.relpath(os.path.join(folder, name), clone)
      copy = _NAMES.get(path, path.removeprefix('scripts/'))
      copy = os.path.join(wheel, 'agents', copy)
      if os.path.exists(copy) and name != '__init__.py' and path not in _OTHER:
        found[path] = int(_parse(os.path.join(folder, name)) != _parse(copy))
  return found


def _parse(path):
  """Return the syntax of a file without imports and docstrings."""
  with open(path) as file_:
    tree = ast.parse(file_.read())
  for node in map(vars, ast.walk(tree)):
    if isinstance(node.get('body'), list):
      node['body'] = [x for x in node['body'] if not _is_left_out(x)]
  return ast.dump(tree)


def _is_left_out(node):
  if isinstance(node, ast.Try):
    # The copy imports in a try statement.
    node = node.body[0]
  is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
  return is_text or isinstance(node, (ast.Import, ast.ImportFrom))
