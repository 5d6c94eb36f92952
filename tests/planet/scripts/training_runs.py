"""Training runs in processes of their own, for the tests of the programs."""

import collections
import glob
import json
import os
import re
import subprocess
import sys

from tests import golden

Result = collections.namedtuple('Result', 'code, output')

# Images and plans are smaller than in `debug`, which saves a third of the time.
SMALL = {
  'tasks': ['dummy'],
  'max_steps': 40,
  'image_size': 32,
  'planner_iterations': 1,
  'planner_horizon': 2,
}


def start(logdir, params=None, config='debug', args=()):
  """Start training; output and errors go to one pipe."""
  params = json.dumps({**SMALL, **(params or {})})
  command = [sys.executable, '-u', '-m', 'planet.scripts.train']
  command += ['--logdir', str(logdir), '--config', config]
  return subprocess.Popen(
    command + ['--params', params, *args],
    cwd=golden.ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def train(logdir, params=None, config='debug', args=(), seconds=240):
  """Train to the end; returns exit code and output."""
  process = start(logdir, params, config, args)
  try:
    output, _ = process.communicate(timeout=seconds)
  finally:
    process.kill()
  return Result(process.returncode, output)


def train_here(logdir, params=None, more=()):
  """Train to the end in this process."""
  from planet.scripts import train as program

  args = ['--logdir', str(logdir), '--config', 'debug']
  args += ['--params', json.dumps({**SMALL, **(params or {})})]
  assert program.run([*args, *more]) == 0


def wait_for(process, pattern):
  """Read the output of a program until a line matches; returns the match."""
  lines = []
  for line in process.stdout:
    lines.append(line)
    match = re.search(pattern, line)
    if match:
      return match
  raise AssertionError(f'{pattern!r} never came:\n' + ''.join(lines))


def run_dir(logdir):
  return os.path.join(str(logdir), '00001')


def checkpoints(logdir):
  """Global steps of all checkpoints."""
  names = glob.glob(os.path.join(run_dir(logdir), 'model.ckpt-*.index'))
  return sorted(int(re.search(r'-(\d+)\.index', x).group(1)) for x in names)


def episodes(logdir, phase='train'):
  """Sorted names of recorded episodes."""
  pattern = os.path.join(run_dir(logdir), f'{phase}_episodes', '*.npz')
  return sorted(os.path.basename(x) for x in glob.glob(pattern))


def metrics(logdir):
  """Lines of `metrics.jsonl`."""
  with open(os.path.join(run_dir(logdir), 'metrics.jsonl')) as file_:
    return [json.loads(line) for line in file_]


def messages(logdir):
  """Text of the log."""
  with open(os.path.join(run_dir(logdir), 'log.txt')) as file_:
    return file_.read()


def losses(logdir):
  """Objectives and gradient norms in the log, by step."""
  pattern = r'^(?:objectives|gradient_norms): .*$'
  return sorted(re.findall(pattern, messages(logdir), re.MULTILINE))
