"""Programs of PPO in processes of their own, with tiny settings."""

import collections
import csv
import glob
import json
import os
import subprocess
import sys

from agents import runs
from agents.tools.tf1 import tf
from tests import golden

Result = collections.namedtuple('Result', 'code, output')

SMALL = {
  'num_agents': 2,
  'update_every': 2,
  'eval_episodes': 2,
  'max_length': 20,
  'update_epochs': 2,
  'policy_layers': [8],
  'value_layers': [8],
  'steps': 80,
}


def command(logdir, params=None, args=(), env='Pendulum-v1'):
  """Command line of a training run after `python`."""
  params = json.dumps({**SMALL, **(params or {})})
  result = ['-m', 'agents.train_ppo', '--config=default', f'--env={env}']
  result += [f'--params={params}', *args]
  return result + ([f'--logdir={logdir}'] if logdir else [])


def config(**settings):
  """Configuration of a run on the pendulum that keeps nothing."""
  overrides = {**SMALL, 'env': 'Pendulum-v1', **settings}
  return runs.prepare('default', overrides=overrides)


def write_checkpoint(folder, step):
  """Write a real one, which holds nothing but the global step."""
  with tf.Graph().as_default(), tf.Session() as sess:
    variable = tf.train.create_global_step()
    sess.run(variable.initializer)
    tf.train.Saver().save(sess, os.path.join(folder, 'model.ckpt'), step)


def start(*args, prefix=(), **environ):
  """Start Python; output and errors go to one pipe."""
  return subprocess.Popen(
    [*prefix, sys.executable, '-u', *args],
    cwd=golden.ROOT,
    env={**os.environ, 'PYTHONPATH': golden.ROOT, **environ},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def finish(process, seconds=120):
  try:
    output, _ = process.communicate(timeout=seconds)
  finally:
    process.kill()
  return Result(process.returncode, output)


def train(logdir, params=None, args=(), **kwargs):
  """Train in the process of Python to the end."""
  args = ('--noenv_processes', *args)
  return finish(start(*command(logdir, params, args, **kwargs)))


def fail(capsys, program, args):
  """Sentence that a command line leads to."""
  assert program.run(args) == 2
  printed = capsys.readouterr().err
  *_, error = printed.strip().splitlines()
  assert error.startswith('Error: ') and 'Traceback' not in printed
  return error


def wait_for(process, words):
  """Read the output of a program until a line has some words."""
  lines = []
  for line in process.stdout:
    lines.append(line)
    if words in line:
      return line
  raise AssertionError(f'{words!r} never came:\n' + ''.join(lines))


def run_dir(logdir):
  """Folder of the only run."""
  (folder,) = glob.glob(os.path.join(str(logdir), '*-default'))
  return folder


def scores(logdir):
  """Phases, steps and scores of the only run of a folder."""
  return read_scores(run_dir(logdir))


def read_scores(run):
  """Phases, steps and scores of `scores.csv`."""
  with open(os.path.join(run, 'scores.csv'), newline='') as file_:
    return [
      (x['phase'], int(x['global_step']), float(x['mean_score']))
      for x in csv.DictReader(file_)
    ]


def metrics(logdir):
  """Lines of `metrics.jsonl`."""
  with open(os.path.join(run_dir(logdir), 'metrics.jsonl')) as file_:
    return [json.loads(line) for line in file_]
