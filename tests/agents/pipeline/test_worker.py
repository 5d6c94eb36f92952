"""What workers do to single observations and infos."""

import numpy as np

from agents.pipeline import worker
from tests import golden


def test_paths_equal_the_recorded_ones():
  """Explorers put kinds such as `/observations` in front."""
  recorded = golden.load_json('pipeline/pipeline_golden')['flatten']
  flat = worker.flatten(recorded['inp'])
  assert {f'/{k}': v for k, v in flat.items()} == recorded['out']
  assert list(worker.flatten(3)) == ['agent']


def test_only_numbers_are_told():
  """Arrays and flags are; texts, objects and nothing are not."""
  info = {
    'flag': True,
    'text': 'a',
    'none': None,
    'deep': {'array': np.ones(2, np.float32), 'list': [1, 2]},
    'unlike': {'object': object()},
  }
  found = worker.numbers(info)
  assert set(found) == {'flag', 'deep/array', 'deep/list'}
  assert found['deep/array'].dtype == np.float32
