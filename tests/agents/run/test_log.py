"""Tests of the JSON lines."""

import json
import os

from agents.run.log import MetricsWriter


def read(folder):
  with open(os.path.join(folder, 'metrics.jsonl')) as file_:
    return [json.loads(line) for line in file_]


def test_lines(tmp_path):
  writer = MetricsWriter(str(tmp_path / 'logdir'))
  writer.write('train', 3, 8, {'a': 1, 'b': float('nan'), 'c/d': 0.5})
  writer.write('test', 4, 9, {})
  first, second = read(tmp_path / 'logdir')
  assert first.pop('wall_time') > 1e9
  assert first == {
    'phase': 'train',
    'step': 3,
    'global_step': 8,
    'a': 1.0,
    'c/d': 0.5,
  }
  assert second['phase'] == 'test'


def test_summaries(tmp_path):
  """Scalars of a serialised summary, zeros included."""
  from agents.tools.tf1 import tf

  writer = MetricsWriter(str(tmp_path))
  summary = tf.Summary(
    value=[
      tf.Summary.Value(tag='x/y', simple_value=0.0),
      tf.Summary.Value(tag='image', image=tf.Summary.Image(height=1)),
    ]
  )
  writer.write_summary('train', 1, 2, summary.SerializeToString())
  (line,) = read(tmp_path)
  assert line['x/y'] == 0.0 and 'image' not in line


def test_half_a_line_is_removed_on_restart(tmp_path):
  """What a killed process has left does not spoil the lines to come."""
  MetricsWriter(str(tmp_path)).write('train', 1, 1, {})
  with open(tmp_path / 'metrics.jsonl', 'a') as file_:
    file_.write('{"phase": "tra')
  MetricsWriter(str(tmp_path)).write('train', 2, 2, {})
  assert [x['step'] for x in read(tmp_path)] == [1, 2]
