"""Which runs of an experiment a process works on, and with which seeds."""

import os
import time

from agents.tools.attr_dict import AttrDict
from planet.scripts import preparation
from planet.scripts import train
from planet.training import ping


def make_args(logdir, **changes):
  """Arguments of the program with a task that needs no simulator."""
  args = dict(
    logdir=str(logdir),
    config='debug',
    params=AttrDict(tasks=['dummy'], isolate_envs='none'),
    num_runs=1,
    ping_every=0,
    resume_runs=True,
    seed=None,
  )
  return AttrDict({**args, **changes})


def test_next_run_after_a_takeover(tmp_path, monkeypatch):
  """A worker that loses a run goes on, and comes back when it is left."""
  worked = []

  def process(logdir, args):
    worked.append(os.path.basename(logdir))
    yield 1.0
    if len(worked) == 1:
      ping.write(logdir, 'other')
      time.sleep(0.3)
      yield 2.0

  monkeypatch.setattr(train, 'process', process)
  monkeypatch.setattr(preparation, 'check', lambda args: None)
  train.main(make_args(tmp_path, num_runs=2, ping_every=0.1))
  first, second, third = worked
  assert first == third != second
  assert all((tmp_path / x / 'DONE').exists() for x in worked)
