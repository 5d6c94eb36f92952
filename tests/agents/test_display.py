"""What users see of a run."""

import io
import json
import types

from agents import display
from agents.tools.tf1 import tf

HEADER = 'phase,global_step,mean_score,kl_change,penalty,wall_time'


def read(path):
  """Lines without the time."""
  return [x.rpartition(',')[0] for x in path.read_text().splitlines()]


def test_scores_after_a_kill(tmp_path):
  """What happened after the checkpoint is dropped, as are broken lines."""
  path = tmp_path / 'scores.csv'
  table = display.ScoreTable(str(path))
  for step in (10, 20, 30):
    table.append('train', step, step / 4, None, None)
  with open(path, 'a') as file_:
    file_.write('eval,2')
  table = display.ScoreTable(str(path), 20)
  table.append('eval', 25, 0.1, '0.01', '1.5')
  assert read(path) == [
    HEADER.rpartition(',')[0],
    'train,10,2.5,,',
    'train,20,5.0,,',
    'eval,25,0.1,0.01,1.5',
  ]
  assert path.read_text().startswith(HEADER)
  display.ScoreTable(str(path))
  assert len(read(path)) == 1


def run_phases(logdir):
  """One update and its evaluation, as the loop tells about them."""
  stream = io.StringIO()
  config = types.SimpleNamespace(logdir=logdir and str(logdir))
  shown = display.Display(config, 0, 40, stream)
  train, eval_ = [
    types.SimpleNamespace(name=x, steps=20) for x in ('train', 'eval')
  ]
  summary = tf.Summary(
    value=[
      tf.Summary.Value(tag='a/adjust_penalty/kl_change', simple_value=0.25),
      tf.Summary.Value(tag='a/adjust_penalty/penalty', simple_value=1.5),
    ]
  ).SerializeToString()
  shown.start_phase(train, 0, 0, 0, 0)
  shown.step(train, 20, 20)
  shown.score(train, 0, 20, 3.25)
  shown.summary(train, 20, 20, summary)
  shown.start_phase(eval_, 0, 0, 0, 20)
  shown.step(eval_, 20, 40)
  shown.score(eval_, 0, 40, 4.0)
  shown.checkpoint('some/path')
  shown.close()
  return stream.getvalue()


def test_phases(tmp_path):
  """Scores are shown and kept; the penalty belongs to the evaluation."""
  output = run_phases(tmp_path)
  assert 'Score 3.25. Update 1 train, step 20.' in output
  assert 'Score 4.00. Update 1 eval, step 40.' in output
  assert 'Saved some/path.' in output
  lines = read(tmp_path / 'scores.csv')
  assert lines[1:] == ['train,20,3.25,,', 'eval,40,4.0,0.25,1.5']
  (line,) = (tmp_path / 'metrics.jsonl').read_text().splitlines()
  line = json.loads(line)
  assert line['phase'] == 'train' and line['global_step'] == 20
  assert line['a/adjust_penalty/kl_change'] == 0.25


def test_nothing_is_kept_without_a_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert 'Score 4.00' in run_phases(None)
  assert not list(tmp_path.iterdir())
