"""What users see of a run."""

import io
import json
import math
import types

import pytest

from agents import display
from agents.run import log
from agents.tools.tf1 import tf

HEADER = 'phase,global_step,mean_score,kl_change,penalty,wall_time,episodes'


def read(path):
  """Lines without the time and the number of episodes."""
  return [x.rsplit(',', 2)[0] for x in path.read_text().splitlines()]


def make(logdir, first_step=0):
  """Display, and the stream of its progress."""
  stream = io.StringIO()
  config = types.SimpleNamespace(
    logdir=logdir and str(logdir),
    update_every=1,
    eval_episodes=1,
    max_length=20,
    steps=20,
    update_epochs=5,
  )
  return display.Display(config, first_step, stream), stream


def score(logdir, first_step, *steps):
  """Scores of a training that begins at a step."""
  shown, _ = make(logdir, first_step)
  for step in steps:
    phase = types.SimpleNamespace(name='train', episodes=2)
    shown.score(phase, 0, step, step / 4)
  shown.close()


def test_scores_after_a_kill(tmp_path):
  """What happened after the checkpoint is dropped, as are broken lines."""
  path = tmp_path / 'scores.csv'
  score(tmp_path, 0, 10, 20, 30)
  with open(path, 'a') as file_:
    file_.write('eval,2')
  score(tmp_path, 20, 25)
  assert read(path) == [
    HEADER.rsplit(',', 2)[0],
    'train,10,2.5,,',
    'train,20,5.0,,',
    'train,25,6.25,,',
  ]
  assert path.read_text().startswith(HEADER)
  score(tmp_path, 0)
  assert len(read(path)) == 1


def summarize(**values):
  """Serialized summary of scalars."""
  values = [tf.Summary.Value(tag=k, simple_value=v) for k, v in values.items()]
  return tf.Summary(value=values).SerializeToString()


def show(**values):
  """Line of an update; of the scalars some are replaced."""
  scalars = {
    'mean_return': 25.125,
    'mean_value': 24,
    'normalized_advantage': 1e-9,
    'mean_value_loss': 0.5,
    'mean_policy_loss': -0.01234,
    'kl_change': 0.0131,
    'current_penalty': 1,
    'penalty': 1,
    'kl_cutoff_episodes': 0,
    **values,
  }
  return display.describe_update(scalars)


def test_line_of_an_update():
  """What the original prints, with its words."""
  assert show() == (
    'value target 25.1, value 24, normalized advantage 1e-09, value loss 0.5, '
    'policy loss -0.0123, kl change 0.0131, current penalty 1'
  )
  assert show(penalty=1.5).endswith(', increase penalty to 1.5')
  text = show(penalty=2 / 3, kl_cutoff_episodes=1.44)
  assert 'penalty 1, decrease penalty to 0.667, kl cutoff! ' in text
  assert text.endswith('kl cutoff! (1.44 episodes per epoch)')
  # The rest of a summary, or one of an older version.
  assert display.describe_update({'mean_score': 1.0}) == ''


def run_phases(logdir, stop=False):
  """One update and its evaluation, as the loop tells about them.

  Stops between them on request.
  """
  shown, stream = make(logdir)
  before = ''
  train, eval_ = [
    types.SimpleNamespace(name=x, steps=20, episodes=3)
    for x in ('train', 'eval')
  ]
  summary = summarize(
    **{
      'a/adjust_penalty/kl_change': 0.25,
      'a/adjust_penalty/penalty': 1.5,
      'a/adjust_penalty/current_penalty': 1,
      'a/update/mean_value_loss': 0.5,
      'a/update/mean_policy_loss': -0.25,
    }
  )
  shown.start_phase(train, 0, 0, 0)
  shown.step(train, 20, 20)
  shown.score(train, 0, 20, 3.25)
  shown.summary(train, 20, 20, summary)
  assert shown.record.take() is None
  if stop:
    shown.close()
    before = stream.getvalue()
    shown, stream = make(logdir, 20)
  shown.start_phase(eval_, 0, 0, 20)
  shown.step(eval_, 20, 40)
  shown.score(eval_, 0, 40, 4.0)
  record = shown.record.take()
  assert record.pop('seconds') > 0
  assert record == {
    'logdir': logdir and str(logdir),
    'epoch': 1,
    'environment_steps': 20,
    'episodes': 3,
    'updates': 5,
    'return': 3.25,
    'test_return': 4.0,
    'loss/value': 0.5,
    'loss/policy': -0.25,
  }
  assert shown.record.take() is None
  shown.checkpoint('some/path')
  shown.close()
  return before + stream.getvalue()


@pytest.mark.parametrize('stop', [False, True])
def test_phases(tmp_path, stop):
  """Scores are shown and kept; the penalty belongs to the evaluation."""
  output = run_phases(tmp_path, stop)
  assert 'Return 3.25. Update 1 train, 20 environment steps.' in output
  assert 'Return 4.00. Update 1 eval, 20 environment steps.' in output
  assert 'Saved some/path.' in output
  # Plain names over environment steps.
  (event,) = log.read_events(str(tmp_path / 'scalars'))
  assert event['update/kl_change'] == 0.25 and event['update/penalty'] == 1.5
  assert event['return/train'] == 3.25 and event['return/test'] == 4
  assert event['loss/value'] == 0.5 and event['time/updates'] == 5
  assert (
    'Update 1, 20 environment steps: value loss 0.5, policy loss -0.25, kl '
    'change 0.25, current penalty 1, inc' in output
  )
  lines = read(tmp_path / 'scores.csv')
  assert lines[1:] == ['train,20,3.25,,', 'eval,40,4.0,0.25,1.5']
  line, end = (tmp_path / 'metrics.jsonl').read_text().splitlines()
  line, end = json.loads(line), json.loads(end)
  assert line['phase'] == 'train' and line['global_step'] == 20
  assert line['update/kl_change'] == 0.25
  assert end['phase'] == 'epoch' and end['return/test'] == 4


def test_nothing_is_kept_without_a_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert 'Return 4.00' in run_phases(None)
  assert not list(tmp_path.iterdir())


def test_counts_go_on(tmp_path):
  """Episodes and updates of before are those of the files."""
  run_phases(tmp_path)
  shown, _ = make(tmp_path, 40)
  eval_ = types.SimpleNamespace(name='eval', episodes=3)
  shown.score(eval_, 1, 80, 5.0)
  record = shown.record.take()
  assert (record['episodes'], record['updates']) == (3, 5)
  shown.close()


def test_scores_without_wall_times(tmp_path):
  """Files of other programs are continued, too."""
  path = tmp_path / 'scores.csv'
  path.write_text('phase,global_step,mean_score\neval,10,1\neval,30,2\n,,\n')
  score(tmp_path, 20, 25)
  lines = [x.split(',')[:3] for x in path.read_text().splitlines()[1:]]
  assert lines == [['eval', '10', '1'], ['train', '25', '6.25']]


def test_epoch_without_an_episode_or_update():
  """A full phase has a record, with all values; part of one has none."""
  shown, _ = make(None)
  shown._config.eval_episodes = 0
  train = types.SimpleNamespace(name='train', episodes=0)
  shown.score(train, 0, 12, math.nan)
  assert shown.record.take() is None
  shown.score(train, 0, 20, math.nan)
  record = shown.record.take()
  assert (record['epoch'], record['environment_steps']) == (1, 20)
  for name in ('return', 'test_return', 'loss/value', 'loss/policy'):
    assert math.isnan(record[name])


def test_updates_after_a_kill(tmp_path):
  """What was lost is not counted, not even when the run is continued twice."""
  run_phases(tmp_path)
  for first_step in (10, 40):
    shown, _ = make(tmp_path, first_step)
    phase = types.SimpleNamespace(name='eval', episodes=3)
    shown.score(phase, 1, 80, 5.0)
    assert shown.record.take()['updates'] == 0
    shown.close()
