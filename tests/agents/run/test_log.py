"""Scalars and messages on disk, also after a process was killed."""

import fcntl
import json
import math
import os
import threading

import pytest

from agents import display
from agents.run import log, plot
from agents.run.log import MetricsWriter
from agents.tools import attr_dict


def read(folder):
  with open(os.path.join(folder, 'metrics.jsonl')) as file_:
    return [json.loads(line) for line in file_]


def test_lines(tmp_path):
  writer = MetricsWriter(str(tmp_path / 'logdir'))
  scalars = {'a': 1, 'b': float('nan'), 'c/d': 0.5}
  writer.write('train', 3, 8, scalars, env_steps=16)
  writer.write('test', 4, 9, {}, 20)
  first, second = read(tmp_path / 'logdir')
  assert first.pop('wall_time') > 1e9
  assert first == {
    'phase': 'train',
    'step': 3,
    'global_step': 8,
    'env_steps': 16,
    'a': 1.0,
    'c/d': 0.5,
  }
  assert second['phase'] == 'test' and second['env_steps'] == 20


def test_summaries():
  """Scalars of a serialized summary, zeros included."""
  from agents.tools.tf1 import tf

  summary = tf.Summary(
    value=[
      tf.Summary.Value(tag='x/y', simple_value=0.0),
      tf.Summary.Value(tag='image', image=tf.Summary.Image(height=1)),
    ]
  )
  assert log.read_summary(summary.SerializeToString()) == {'x/y': 0.0}


def test_half_a_line_is_removed_on_restart(tmp_path):
  """What a killed process has left does not spoil the lines to come."""
  MetricsWriter(str(tmp_path)).write('train', 1, 1, {}, 1)
  with open(tmp_path / 'metrics.jsonl', 'a') as file_:
    file_.write('{"phase": "tra')
  MetricsWriter(str(tmp_path)).write('train', 2, 2, {}, 2)
  assert [x['step'] for x in read(tmp_path)] == [1, 2]


@pytest.mark.parametrize(
  'before, after',
  [
    (None, 'new\n'),
    ('', 'new\n'),
    ('torn', 'new\n'),
    ('one\n', 'one\nnew\n'),
    ('one\ntorn', 'one\nnew\n'),
    ('one\n\u00fc\ntor\u00fc', 'one\n\u00fc\nnew\n'),
  ],
)
def test_append(tmp_path, before, after):
  """Complete lines stay; an incomplete last one goes."""
  path = tmp_path / 'lines.txt'
  if before is not None:
    path.write_text(before, encoding='utf-8')
  log.append(str(path), 'new\n')
  assert path.read_text(encoding='utf-8') == after


def test_append_waits_for_others(tmp_path):
  """The half-written line of another process is not taken for a torn one."""
  path = tmp_path / 'lines.txt'
  with open(path, 'ab', buffering=0) as file_:
    fcntl.flock(file_, fcntl.LOCK_EX)
    file_.write(b'one ')
    thread = threading.Thread(target=log.append, args=(str(path), 'new\n'))
    thread.start()
    thread.join(0.3)
    file_.write(b'line\n')
  thread.join()
  assert path.read_text() == 'one line\nnew\n'


def test_plain_names(tmp_path):
  """Lines, and events over environment steps, have the same names."""
  writer = MetricsWriter(str(tmp_path))
  tags = {'graph/a/objectives/image': -3, 'x/optimizer_main/grad_norm': 2}
  writer.write('train', 5, 7, {**tags, 'other': 1}, env_steps=1000)
  writer.write('epoch', 1, 9, {'test_return': 10}, env_steps=2000)
  assert list(log.iterate_events(str(tmp_path / 'scalars')))[0][1] == 1000
  assert log.read_events(str(tmp_path / 'scalars')) == [
    {'loss/image': 3, 'optimizer/grad_norm': 2, 'other': 1},
    {'return/test': 10},
  ]
  assert read(tmp_path)[0]['loss/image'] == 3


def test_read_metrics(tmp_path):
  """Of steps that were repeated, the later values count."""
  assert log.read_metrics(str(tmp_path)) == []
  writer = MetricsWriter(str(tmp_path))
  for phase, value in (('train', 1), ('test', 2), ('train', 3)):
    writer.write(phase, 4, 5, {'a': value}, 6)
  rows = log.read_metrics(str(tmp_path))
  assert [(x['phase'], x['a']) for x in rows] == [('train', 3), ('test', 2)]


def test_longer_epochs_delete_no_metrics(tmp_path):
  """Epochs and steps of a phase fall, the global step does not."""
  writer = MetricsWriter(str(tmp_path))
  places = [(1, 20), (2, 40), (3, 60), (1, 160), (2, 260), (3, 360)]
  for epoch, global_step in places:
    writer.write('epoch', epoch, global_step, {'a': global_step}, 0)
  rows = log.read_metrics(str(tmp_path))
  assert [(x['step'], x['a']) for x in rows] == places
  log.cut_metrics(str(tmp_path), 160)
  assert [x['a'] for x in log.read_metrics(str(tmp_path))] == [20, 40, 60, 160]


def test_table(tmp_path):
  """Columns are added as keys appear, sorted among the new ones."""
  path = tmp_path / 'table.csv'
  table = log.Table(str(path), ['step'])
  assert path.read_text() == 'step\n'
  table.append({'step': 1})
  table.append({'step': 2, 'b': 0.5, 'a': 'x,y'})
  path.write_text(path.read_text() + '3,')
  table = log.Table(str(path), ['step', 'c'])
  table.append({'step': 4})
  assert path.read_text().splitlines() == [
    'step,a,b,c',
    '1,,,',
    '2,"x,y",0.5,',
    '4,,,',
  ]
  rows = list(log.read_table(str(path)))
  assert rows[1] == {'step': '2', 'a': 'x,y', 'b': '0.5', 'c': ''}


def test_table_forgets_rows(tmp_path):
  path = tmp_path / 'table.csv'
  path.write_bytes(b'step\r\n1\r\n2\r\n3\r\n')
  table = log.Table(str(path), ['step'], lambda row: int(row['step']) < 3)
  table.append({'step': 5})
  assert path.read_bytes() == b'step\n1\n2\n5\n'


def test_broken_event_file(tmp_path, caplog):
  """Scalars before the break are read."""
  events = log.Events(str(tmp_path))
  events.write(1, {'x': 1.5})
  events.write(2, {'x': 2.5})
  events.close()
  (path,) = tmp_path.iterdir()
  whole = path.read_bytes()
  path.write_bytes(whole[:-5])
  assert log.read_events(str(tmp_path)) == [{'x': 1.5}]
  assert not caplog.messages, 'as of a training at work'
  # What a file system leaves of it after a power failure.
  path.write_bytes(whole[:-5] + bytes(5))
  assert log.read_events(str(tmp_path)) == [{'x': 1.5}]
  (told,) = caplog.messages
  assert f'{path} is damaged; its rest is left out' in told


def test_lines_that_are_no_metrics(tmp_path, caplog):
  """They are left out, whatever they are, and counted once."""
  good = '{"phase": "train", "step": 1, "global_step": 1, "x": 2}'
  lines = ['3', '[]', '{', '{"phase": "train"}', good, 'null']
  lines.append(good.replace('2', '"text"'))
  (tmp_path / 'metrics.jsonl').write_text('\n'.join(lines) + '\n')
  found = log.read_metrics(str(tmp_path))
  assert found == [{'phase': 'train', 'step': 1, 'global_step': 1, 'x': 2}]
  (record,) = caplog.records
  assert record.getMessage().endswith('metrics.jsonl: 6.')


HUGE = '1' + 400 * '0'


@pytest.mark.parametrize(
  'line',
  [
    f'{{"phase": "train", "step": 2, "global_step": {HUGE}}}',
    '{"phase": "train", "step": 2, "global_step": NaN}',
    f'{{"phase": "train", "step": 2, "global_step": 2, "x": {HUGE}}}',
    '[' * 100000,
    '\0\ufffd',
  ],
)
def test_unusual_lines_of_metrics(line, tmp_path):
  """What Python reads as JSON, but curves cannot show."""
  good = '{"phase": "train", "step": 1, "global_step": 1, "x": 2}'
  (tmp_path / 'metrics.jsonl').write_text(f'{line}\n{good}\n')
  assert log.read_metrics(str(tmp_path)) == [json.loads(good)]


@pytest.mark.parametrize(
  'line', ['train,text,1', '"' + 200000 * 'x', 'train,1,inf', '\0,\0,\0', '']
)
def test_damaged_rows_of_scores(line, tmp_path):
  """They are left out, by plots and by PPO that continues the run."""
  path = tmp_path / 'scores.csv'
  path.write_text(f'phase,global_step,mean_score\ntrain,5,1.5\n{line}\n')
  with open(path, 'a') as file_:
    file_.write('train,9,2.5\n')
  (points,) = plot.read_seeds(str(path), 'global_step', 'mean_score').values()
  assert points[1].tolist()[0] == 1.5
  config = attr_dict.AttrDict(
    logdir=str(tmp_path),
    update_every=1,
    eval_episodes=1,
    max_length=10,
    steps=100,
    update_epochs=1,
  )
  display.Display(config, first_step=9).close()
  assert 'train,5,1.5' in path.read_text()


def test_damaged_first_line(tmp_path):
  """However long it is, columns that can be read keep their values."""
  path = tmp_path / 'progress.csv'
  path.write_text('x' * 200000 + ',b\n1,2\n')
  log.Table(str(path), ['c']).append({'b': 3, 'c': 4})
  rows = [(x['b'], x['c']) for x in log.read_table(str(path))]
  assert rows == [('2', ''), ('3', '4')]


def test_records_of_epochs():
  """Totals go on, values do not; each is given out once, when it is done."""
  record = log.EpochRecord('folder', ['return', 'loss'])
  record.totals['updates'] = 2
  record.add({'return': 1.0})
  assert record.take() is None
  record.add({'return': 2.0, 'epoch': 1})
  record.complete = True
  taken = record.take()
  assert taken.pop('seconds') >= 0 and math.isnan(taken.pop('loss'))
  wanted = {'logdir': 'folder', 'return': 2.0, 'epoch': 1, 'updates': 2}
  assert taken == wanted and record.take() is None
  record.complete = True
  taken = record.take()
  assert math.isnan(taken['return']) and taken['updates'] == 2


def test_files_that_a_spreadsheet_saved(tmp_path):
  """They may begin with a byte order mark, which is no part of a name."""
  path = tmp_path / 'progress.csv'
  path.write_text('a,b\n1,2\n', encoding='utf-8-sig')
  log.Table(str(path), ['a', 'b', 'c']).append({'a': 3})
  rows = list(log.read_table(str(path), ['a']))
  assert [x['a'] for x in rows] == ['1', '3']
  path.write_text('{"a": 1}\n', encoding='utf-8-sig')
  assert log.read_json(str(path)) == [{'a': 1}]
