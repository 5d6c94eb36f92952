"""The shape of the originals is in the files and lines that the page names."""

import ast
import os
import re

import pytest

from tests import golden

PLACE = re.compile(r'`([\w/]+\.py):(\d+)` `([\w.]+)`')
# Calls that have to stay in the code of these files.
CALLS = {
  'planet/control/simulate.py': ['tf.scan'],
  'agents/train_ppo.py': ['tf.app.flags.DEFINE_string', 'tf.app.run'],
  'agents/visualize_ppo.py': ['tf.app.flags.DEFINE_string', 'tf.app.run'],
  'baselines_her/run.py': ['tf.app.flags.DEFINE_string', 'tf.app.run'],
  'planet/scripts/train.py': ['tf.app.run'],
}
# Flags of the originals, with their defaults.
FLAGS = {
  'agents/train_ppo.py': {
    'logdir': None,
    'config': None,
    'env_processes': True,
  },
  'agents/visualize_ppo.py': {
    'logdir': None,
    'outdir': None,
    'checkpoint': None,
    'num_agents': 1,
    'num_episodes': 5,
    'env_processes': True,
  },
  'baselines_her/run.py': {
    'env_type': None,
    'seed': None,
    'num_timesteps': 1e6,
    'network': None,
    'gamestate': None,
    'num_env': None,
    'reward_scale': 1.0,
    'save_path': None,
    'save_video_interval': 0,
    'save_video_length': 200,
    'log_path': None,
    'play': False,
  },
}


def read(path):
  with open(os.path.join(golden.ROOT, path)) as file_:
    return file_.read()


def find_calls(path):
  """Calls in the syntax tree, which has neither comments nor docstrings."""
  nodes = ast.walk(ast.parse(read(path)))
  return [x for x in nodes if isinstance(x, ast.Call)]


def list_places():
  text = read('docs/architecture.md')
  rows = PLACE.findall(text)
  assert len(rows) > 15 and {x for x, _, _ in rows} >= {*CALLS}
  return rows


@pytest.mark.parametrize('path, line, name', list_places())
def test_lines_are_right(path, line, name):
  """A definition, an assignment or a call of this name begins there."""
  pattern = rf'((def|class|=|^)\s*(\w+\.)*|\.){re.escape(name)}'
  lines = enumerate(read(path).splitlines(), 1)
  found = [x for x, text in lines if re.search(pattern, text.strip())]
  assert int(line) in found, (
    f'docs/architecture.md names {name} in line {line} of {path}; it is in '
    f'{found}.'
  )


@pytest.mark.parametrize('path', CALLS)
def test_calls_are_in_the_code(path):
  names = {ast.unparse(x.func) for x in find_calls(path)}
  assert not {*CALLS[path]} - names


def test_episodes_of_planet_are_one_scan():
  """In the order of the steps, from zeros, and without another loop."""
  calls = find_calls('planet/control/simulate.py')
  (scan,) = [x for x in calls if ast.unparse(x.func) == 'tf.scan']
  words = [ast.unparse(x) for x in scan.args]
  assert words == ['simulate_fn', 'tf.range(duration)', 'initializer']
  more = {x.arg: ast.unparse(x.value) for x in scan.keywords}
  assert more == {'parallel_iterations': '1'}
  assert 'while_loop' not in {ast.unparse(x.func)[3:] for x in calls}


@pytest.mark.parametrize('path', FLAGS)
def test_flags_of_the_originals(path):
  """Names and defaults, as literal definitions."""
  found = {
    ast.literal_eval(x.args[0]): x.args[1]
    for x in find_calls(path)
    if re.match(r'tf\.app\.flags\.DEFINE_', ast.unparse(x.func))
  }
  for name, default in FLAGS[path].items():
    assert ast.literal_eval(found[name]) == default, name
  statements = [ast.unparse(x) for x in ast.parse(read(path)).body]
  assert 'FLAGS = tf.app.flags.FLAGS' in statements


def test_planet_reads_its_words_first():
  calls = find_calls('planet/scripts/train.py')
  (run,) = [x for x in calls if ast.unparse(x.func) == 'tf.app.run']
  assert ast.unparse(run) == 'tf.app.run(lambda _: main(args), remaining)'
