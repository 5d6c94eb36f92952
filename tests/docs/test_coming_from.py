"""Names of the page for those who come from the originals."""

import importlib
import os
import pkgutil
import re

import pytest

from tests import golden

PATH = os.path.join(golden.ROOT, 'docs/coming-from.md')
OURS = re.compile(r'(agents|planet|baselines_her)(\.\w+)+')


def read_tables(left, right):
  """Cells of all rows of tables with these heads."""
  with open(PATH, encoding='utf-8') as file_:
    lines = file_.read().splitlines()
  rows, inside = [], False
  for line in lines:
    if line == f'| {left} | {right} |':
      inside = True
    elif not line.startswith('|'):
      inside = False
    elif inside and not line.startswith('|---'):
      cells = re.split(r' \| ', line.strip('| '))
      assert len(cells) == 2, line
      rows.append(cells)
  return rows


ROWS = read_tables('original', 'here')


def test_names_here():
  """All that the right columns name can be imported."""
  code = [x for _, here in ROWS for x in re.findall(r'`([^`]+)`', here)]
  names = {x.group() for word in code for x in OURS.finditer(word)}
  assert len(names) > 50
  for name in sorted(names):
    pkgutil.resolve_name(name)


def find(name):
  """What `from module import name` finds."""
  module, _, name = name.rpartition('.')
  return getattr(importlib.import_module(module), name)


MOVED = {
  'agents.scripts.train': 'agents.train_ppo',
  'agents.scripts.visualize': 'agents.visualize_ppo',
  'agents.scripts.configs': 'agents.configs',
  'agents.scripts.networks': 'agents.networks',
  'agents.scripts.utility': 'agents.utility',
  'agents.parts.memory': 'agents.ppo.memory',
  'agents.parts.normalize': 'agents.ppo.normalize',
  'planet.tools.nested': 'agents.tools.nested',
}


@pytest.mark.parametrize('name', MOVED)
def test_modules_that_moved(name):
  """They are the same, so that what is set in one is set in both."""
  assert importlib.import_module(name) is importlib.import_module(MOVED[name])


@pytest.mark.parametrize(
  'name, other',
  [
    ('agents.algorithms.PPO', 'agents.ppo.PPOAlgorithm'),
    ('agents.parts.EpisodeMemory', 'agents.ppo.memory.EpisodeMemory'),
    ('agents.algorithms.ppo.PPO', 'agents.ppo.PPOAlgorithm'),
    ('planet.tools.count_weights.count_weights', 'planet.tools.count_weights'),
    ('planet.tools.filter_variables_lib.filter_variables', None),
    ('planet.tools.streaming_mean.StreamingMean', 'agents.tools.StreamingMean'),
    ('planet.control.batch_env.BatchEnv', 'agents.tools.BatchEnv'),
    (
      'planet.control.in_graph_batch_env.InGraphBatchEnv',
      'planet.control.InGraphBatchEnv',
    ),
    ('planet.scripts.train.main', None),
    ('planet.models.RSSM', None),
  ],
)
def test_names_that_moved(name, other):
  found = find(name)
  assert callable(found)
  assert other is None or found is find(other)
