"""Sessions of HER that come from somebody else are data, not programs."""

import os

import pytest

from agents.run import files, references
from tests.agents import hostile
from tests.baselines_her import test_pipeline

toys = test_pipeline.toys


@pytest.mark.parametrize(
  'kind, part, name, value',
  [
    ('memory', 'settings', 'network_class', 'hostile:anything'),
    ('memory', 'env', 'name', 'hostile:Any-v0'),
    ('memory', 'settings', 'demo_file', 'demos.npz'),
    ('memory', 'settings', 'load_path', 'weights'),
    ('memory', 'sampler', 'reference', 'hostile:anything'),
    ('memory', 'settings', 'network_class', 'baselines_her.play:show'),
  ],
)
def test_nothing_is_called(tmp_path, monkeypatch, kind, part, name, value):
  """Neither modules nor pickles are opened that the user has not named."""
  marker = hostile.plant(str(tmp_path), monkeypatch)
  test_pipeline.train(tmp_path, max_exec_iter=1)
  path = tmp_path / 'run'
  filename = str(path / 'checkpoints' / 'checkpoint-1' / 'runner.yaml')
  stored = files.read_yaml(filename)
  # Whoever exchanges a file can exchange its size, too.
  (path / 'checkpoints' / 'checkpoint-1' / 'COMPLETE').write_text('{}')
  for node in stored['params'][kind].values():
    node['args'].setdefault(part, {})[name] = value
    if name == 'demo_file':
      node['args']['settings']['demo_batch_size'] = 1
  files.write_yaml(filename, stored)
  with pytest.raises(references.NotTrusted, match='add --trust'):
    test_pipeline.train(None, '--load-checkpoint', str(path), '--resume')
  assert not os.path.exists(marker)
