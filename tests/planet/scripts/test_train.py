"""Whole training runs: what they write, how they play, stop and resume."""

import json
import os
import re
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from PIL import Image

from agents.run import checkpoint, stopping
from agents.run import folder as run_folder
from planet import trained
from planet.scripts import evaluate, fetch_events, train
from planet.training import running, utility
from tests import processes
from tests.planet.scripts import training_runs

# Most use one run on the simulator.
pytestmark = pytest.mark.render

FINISHED = {
  'tasks': ['cartpole_balance'],
  'action_repeat': 40,
  'isolate_envs': 'process',
  'checkpoint_every': 10,
}


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  """Run of two epochs on the real simulator, in processes."""
  logdir = tmp_path_factory.mktemp('finished')
  result = training_runs.train(logdir, FINISHED, args=['--seed', '3'])
  assert result.code == 0, result.output
  return logdir, result.output


def test_files_of_a_run(finished):
  """Everything that the README lists is there, and DONE."""
  logdir, _ = finished
  names = set(os.listdir(training_runs.run_dir(logdir)))
  assert {
    'DONE',
    'PING',
    'best',
    'checkpoint',
    'config.yaml',
    'metrics.jsonl',
    'test',
    'test_episodes',
    'train',
    'train_episodes',
  } <= names
  assert 'FAIL' not in names
  assert training_runs.checkpoints(logdir) == [20, 40]


def test_episodes_of_a_run(finished):
  """One random episode each, then one per epoch; all of them complete."""
  logdir, _ = finished
  assert len(training_runs.episodes(logdir, 'train')) == 2
  assert len(training_runs.episodes(logdir, 'test')) == 3
  folder = os.path.join(training_runs.run_dir(logdir), 'train_episodes')
  for name in training_runs.episodes(logdir):
    with np.load(os.path.join(folder, name)) as episode:
      assert sorted(episode.files) == [
        'action',
        'action_repeat',
        'image',
        'position',
        'reward',
        'velocity',
      ]
      assert episode['image'].shape == (26, 32, 32, 3)
      assert episode['image'].dtype == np.uint8
      # The cart can be seen, and moves.
      assert episode['image'].std() > 10
      assert (episode['image'][0] != episode['image'][-1]).any()
      assert episode['position'].dtype == np.float32
      assert 50 < episode['reward'].sum() < 1000
      assert episode['action'].shape == (26, 1)
      assert not episode['action'][0].any() and episode['reward'][0] == 0
      assert np.abs(episode['action']).max() <= 1


def test_console_output(finished):
  """The device, progress, one line per epoch, no nan."""
  _, output = finished
  assert output.count('Computing on the ') == 1
  assert 'Epoch 1: train return' in output and 'Epoch 2: train' in output
  assert 'Epoch 1 train: 0/10, step 0, env steps 1000, episodes 1' in output
  assert 'nan' not in output.lower().replace('finance', '')
  lines = output.splitlines()
  assert sum(x.startswith('Epoch 2: ') for x in lines) == 1
  for word in ('objectives: ', 'Recorded', 'phase', 'Saved', 'Score', 'WARN'):
    assert word not in output, word


def test_log_of_a_run(finished):
  """Has what the terminal does not show, in the words of the original."""
  logdir, _ = finished
  text = training_runs.messages(logdir)
  assert 'Epoch 2 phase test (phase step 10, global step 30).' in text
  assert 'objectives: step/reward/divergence/image = [0 ' in text
  assert 'gradient_norms: step/main = [0 ' in text
  assert text.count('Score ') == 2 + text.count('best so far')
  # At the end of the first epoch, and once at the end of the run.
  assert text.count('Saved ') == 2
  for phase in ('train', 'test'):
    for name in training_runs.episodes(logdir, phase):
      assert f'Recorded episode {name[:-4]} to {phase}_episodes.' in text


def test_metrics_of_a_run(finished):
  """Lines of epochs hold returns; the others the scalars of TensorBoard."""
  logdir, _ = finished
  lines = training_runs.metrics(logdir)
  epochs = [x for x in lines if x['phase'] == 'epoch']
  assert [x['global_step'] for x in epochs] == [20, 40]
  assert all(50 < x['return/test'] < 1000 for x in epochs)
  assert epochs[1]['env_steps'] == 2000
  assert all(x['env_steps'] in (1000, 2000) for x in lines)
  assert any('loss/image' in x for x in lines)
  steps = [
    (x['phase'], x['global_step'], x[name])
    for x in lines
    for name in ('time/phase_step', 'time/test/phase_step')
    if name in x
  ]
  # The step in the phase, while the global step runs over all phases.
  assert steps == [
    ('train', 10, 5),
    ('test', 20, 5),
    ('train', 30, 15),
    ('test', 40, 15),
  ]


def test_best_model_of_a_run(finished):
  logdir, _ = finished
  run = training_runs.run_dir(logdir)
  returns = {
    x['global_step']: x['return/test']
    for x in training_runs.metrics(logdir)
    if x['phase'] == 'epoch'
  }
  best = max(returns, key=lambda x: returns[x])
  path, _, _ = trained.restore(str(logdir), 'best')
  assert path == os.path.join(run, f'best/model.ckpt-{best}')
  assert checkpoint.read_best_score(run) == returns[best]


SCALARS = (
  ['data/{}episodes']
  + [f'loss/{{}}{x}' for x in ('reward', 'divergence', 'image')]
  + [
    f'time/{{}}{x}'
    for x in ('phase_step', 'examples_per_second', 'seconds_per_example')
  ]
  + [
    f'model/{{}}{place}/{x}'
    for place in ('closedloop', 'openloop')
    for x in (
      'prior_entropy',
      'prior_std',
      'posterior_entropy',
      'posterior_std',
      'divergence',
    )
  ]
  + [
    f'model/{{}}{place}/{head}_{x}'
    for place in ('closedloop_prior', 'closedloop_posterior', 'openloop')
    for head in ('image', 'reward')
    for x in (
      'mode_mean',
      'mode_std',
      'std_mean',
      'std_std',
      'log_prob',
      'abs_error',
    )
  ]
)
PICTURES = [
  'data/image',
  'model/openloop/reward_trajectory',
  'model/openloop/logprobs',
] + [
  f'model/{place}/{x}'
  for place in ('closedloop_prior', 'closedloop_posterior', 'openloop')
  for x in ('prediction', 'change', 'error', 'animation')
]


def test_summaries_of_a_run(finished):
  """Scalars over environment steps, pictures by phase; few clean names."""
  from agents.tools.tf1 import tf

  run = training_runs.run_dir(finished[0])
  scalars = fetch_events.read_scalars(os.path.join(run, 'scalars'))
  wanted = {x.format(test) for x in SCALARS for test in ('', 'test/')}
  wanted |= {'return/train', 'return/test', 'time/updates', 'time/seconds'}
  wanted |= {
    'return/train_main_cartpole_balance',
    'return/test_main_cartpole_balance',
  }
  wanted |= {'time/episodes', 'time/env_steps_per_second'}
  norms = 'learning_rate', 'grad_norm', 'clipped_gradient_norm'
  wanted |= {f'optimizer/{x}' for x in norms}
  assert set(scalars) == wanted
  assert {x[1] for x in scalars['return/test']} == {1000, 2000}
  # The same names in the other places.
  keys = {x for line in training_runs.metrics(finished[0]) for x in line}
  assert wanted <= keys and len(keys - wanted) == 5
  for phase in ('train', 'test'):
    folder = os.path.join(run, phase)
    found = {
      value.tag: value.WhichOneof('value')
      for name in os.listdir(folder)
      for event in tf.train.summary_iterator(os.path.join(folder, name))
      for value in event.summary.value
    }
    played = {'episodes/test_main_cartpole_balance/animation'}
    assert set(found) == {*PICTURES, *(played if phase == 'test' else ())}
    assert set(found.values()) == {'image'}


def test_finished_run_has_nothing_to_do(finished, capsys):
  args = ['--logdir', str(finished[0]), '--config', 'debug', '--params']
  params = {**training_runs.SMALL, **FINISHED}
  assert train.run([*args, json.dumps(params)]) == 0
  assert 'Nothing to do' in capsys.readouterr().out
  # Other settings would not be those of what was trained.
  assert train.run([*args, json.dumps({**params, 'action_repeat': 2})]) == 2
  assert 'action_repeat' in capsys.readouterr().err


def test_evaluate(finished, capsys):
  """Scores, a video and a contact sheet; equal seeds give equal scores."""
  logdir, _ = finished
  args = ['--logdir', str(logdir), '--episodes', '2', '--seed', '1']
  assert evaluate.run(args + ['--video']) == 0
  output = capsys.readouterr().out
  folder = os.path.join(training_runs.run_dir(logdir), 'videos')
  sheet, filename = sorted(os.listdir(folder), key=lambda x: '.png' not in x)
  assert os.path.join(folder, filename) in output
  assert 'Episode 2 of cartpole_balance: return' in output
  assert 'Mean return' in output
  assert os.path.getsize(os.path.join(folder, filename)) > 1000
  with Image.open(os.path.join(folder, sheet)) as image:
    assert image.size == (6 * 258, 2 * 282)
    assert np.asarray(image).std() > 10
  assert evaluate.run(args) == 0
  again = capsys.readouterr().out
  find = lambda text: [x for x in text.splitlines() if 'return' in x]
  assert find(again) == find(output)
  before = training_runs.episodes(logdir, 'test')
  assert len(before) == 3  # Evaluations are not recorded.


def test_evaluate_refuses_what_it_cannot_do(finished, tmp_path, capsys):
  base = ['--logdir', str(finished[0])]
  for args, message in (
    (['--video', str(tmp_path / 'out.avi')], '.mp4 or .gif'),
    (['--checkpoint', 'model.ckpt-7'], 'no checkpoint'),
    (['--params', '{num_units: 3}'], 'belongs to the trained model'),
    (['--episodes', '0'], 'equal to 1'),
  ):
    assert evaluate.run(base + args) == 2
    assert message in capsys.readouterr().err


def test_busy_run(tmp_path, capsys):
  """One sentence, and the exit code of the other programs."""
  with run_folder.Run.open(str(tmp_path / '00001')):
    command = ['--logdir', str(tmp_path), '--config', 'debug']
    with processes.time_limit(100):
      assert train.run(command) == 2
  (sentence,) = capsys.readouterr().err.splitlines()
  assert 'Another process is using the run' in sentence


def test_a_checkpoint_that_cannot_be_restored(finished, tmp_path, capsys):
  """The run stays finished, with its own limit of steps."""
  logdir = tmp_path / 'copy'
  shutil.copytree(finished[0], logdir)
  run = logdir / '00001'
  (data,) = run.glob('model.ckpt-40.data-*')
  data.write_bytes(bytes(data.stat().st_size))
  before = (run / 'config.yaml').read_bytes()
  threads = {*threading.enumerate()}
  args = ['--logdir', str(logdir), '--config', 'debug']
  assert train.run([*args, '--params', '{max_steps: 60}']) == 2
  assert 'damaged' in capsys.readouterr().err
  assert (run / 'config.yaml').read_bytes() == before
  assert (run / 'DONE').exists()
  new = {*threading.enumerate()} - threads
  assert not [x for x in new if 'tick' in x.name]


@pytest.mark.slow
def test_resume_after_the_end(finished, tmp_path):
  """With more steps, training goes on at the stored step."""
  logdir = tmp_path / 'copy'
  shutil.copytree(finished[0], logdir)
  before = training_runs.episodes(logdir)
  result = training_runs.train(logdir, {**FINISHED, 'max_steps': 60})
  assert result.code == 0, result.output
  assert 'model.ckpt-40.' in result.output
  assert 'Epoch 3 phase train (phase step 20, global step 40)' in (
    training_runs.messages(logdir)
  )
  assert 'Epoch 2 ' not in result.output
  assert training_runs.checkpoints(logdir) == [20, 40, 60]
  assert set(before) < set(training_runs.episodes(logdir))


@pytest.mark.slow
def test_equal_seeds_give_equal_losses(finished, tmp_path):
  training_runs.train(tmp_path, FINISHED, args=['--seed', '3'])
  losses = training_runs.losses(tmp_path)
  assert len(set(losses)) == 16
  assert losses == training_runs.losses(finished[0])


@pytest.mark.slow
def test_equal_seeds_give_equal_runs(tmp_path):
  """Episodes, their order and all metrics, with parallel collections."""
  names = 'abc'
  params = {
    'max_steps': 60,
    'image_size': 32,
    'batch_shape': [5, 4],
    'action_repeat': 250,
    'train_collects': [dict(name=x, after=10, every=10) for x in names],
    'isolate_envs': 'thread',
  }
  found = []
  for logdir in (tmp_path / 'a', tmp_path / 'b'):
    training_runs.train_here(logdir, params, ['--seed', '1'])
    folder = os.path.join(training_runs.run_dir(logdir), 'train_episodes')
    episodes = []
    for name in training_runs.episodes(logdir):
      with np.load(os.path.join(folder, name)) as episode:
        episodes.append(episode['image'].tobytes())
    times = re.compile('wall_time|second')
    rows = [
      {k: v for k, v in row.items() if not times.search(k)}
      for row in training_runs.metrics(logdir)
    ]
    found.append((episodes, rows))
  assert len(found[0][0]) == len(set(found[0][0])) == 1 + 2 * 3
  assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signals_save_and_end(tmp_path, number):
  """Also in the middle of a long episode."""
  params = {
    'isolate_envs': 'process',
    'planner_amount': 1000,
    'planner_topk': 100,
    'planner_iterations': 60,
    'max_steps': 1000,
  }
  process = training_runs.start(tmp_path, params, args=['--verbose'])
  try:
    training_runs.wait_for(process, 'Epoch 1 phase test')
    time.sleep(2)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert 'Repeat the command to continue.' in output
    assert training_runs.checkpoints(tmp_path)
    names = os.listdir(training_runs.run_dir(tmp_path))
    assert 'DONE' not in names and 'FAIL' not in names
  finally:
    process.kill()


def test_signal_during_the_clean_up(tmp_path, monkeypatch, capsys):
  """The run is over, nobody is told to continue it, and no other begins."""

  def train_only(*unused):
    yield 1.0
    os.kill(os.getpid(), signal.SIGTERM)
    assert requested.wait(10)

  requested = threading.Event()
  monkeypatch.setattr(stopping, '_requested', requested)
  monkeypatch.setattr(utility, 'train', train_only)
  monkeypatch.setattr(checkpoint, 'newest_step', lambda logdir: 10**6)
  args = ['--logdir', str(tmp_path), '--config', 'debug', '--num_runs', '2']
  args += ['--params', '{tasks: [dummy], isolate_envs: none}']
  assert train.run(args) == 0
  assert 'Repeat the command' not in capsys.readouterr().err
  assert len(os.listdir(tmp_path)) == 1


def find_workers(pid):
  """Children of a process that host environments."""
  children = []
  for name in os.listdir('/proc'):
    try:
      with open(f'/proc/{name}/stat') as file_:
        parent = int(file_.read().rpartition(')')[2].split()[1])
      with open(f'/proc/{name}/cmdline') as file_:
        command = file_.read()
    except (OSError, ValueError, IndexError):
      continue
    if parent == pid and 'spawn_main' in command:
      children.append(int(name))
  return children


@pytest.mark.slow
def test_killed_worker_is_named(tmp_path):
  """Exit code 1, one sentence, no orphans; the run can be continued."""
  process = training_runs.start(
    tmp_path, {'isolate_envs': 'process', 'max_steps': 5000}
  )
  try:
    training_runs.wait_for(process, 'Epoch 1: train return')
    workers = find_workers(process.pid)
    assert len(workers) == 2
    for worker in workers:
      os.kill(worker, signal.SIGKILL)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert 'ended with exit code -9 (SIGKILL)' in output
    assert not processes.wait_for_end(workers)
    names = os.listdir(training_runs.run_dir(tmp_path))
    assert 'DONE' not in names and 'FAIL' not in names
  finally:
    process.kill()
  experiment = running.Experiment('', iter, ping_every=0)
  running.Run(training_runs.run_dir(tmp_path), experiment).claim()


@pytest.mark.slow
@pytest.mark.parametrize('kills', [1, 10])
def test_resume_after_being_killed(tmp_path, kills):
  """At random moments; every new start goes on, and the last is stopped."""
  params = {'checkpoint_minutes': 0.02, 'max_steps': 100000}
  random = np.random.RandomState(kills)
  last = 0
  for _ in range(kills):
    process = training_runs.start(tmp_path, params, args=['--verbose'])
    try:
      training_runs.wait_for(process, r'Epoch \d+ phase \w+ .*global step')
      time.sleep(random.uniform(0, kills))
      assert process.poll() is None
    finally:
      process.kill()
      process.communicate()
    steps = training_runs.checkpoints(tmp_path)
    assert not steps or steps[-1] >= last
    last = steps[-1] if steps else last
  process = training_runs.start(tmp_path, params, args=['--verbose'])
  try:
    match = training_runs.wait_for(process, r'phase \w+ .*global step (\d+)')
    assert last - 20 < int(match.group(1)) <= last + 20
  finally:
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
  assert 'Repeat the command to continue.' in output
  names = os.listdir(training_runs.run_dir(tmp_path))
  assert 'DONE' not in names and 'FAIL' not in names
  assert not [x for x in names if x.endswith('.damaged')]
