"""The program that trains PPO: training, resuming, bad input."""

import functools
import os
import shutil
import signal
import time
import types

import gymnasium
import numpy as np
import pytest

from agents import configs, runs, train_ppo, utility
from agents.run import (
  checkpoint,
  errors,
  files,
  flags,
  folder,
  mpi,
  schema,
  stopping,
)
from agents.tools import AttrDict, phases
from agents.tools.tf1 import tf
from tests import counting, processes
from tests.agents import training_runs
from tests.agents.envs import odd_gymnasium
from tests.agents.ppo import test_algorithm


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  """Folder of a finished run, and what it printed."""
  logdir = tmp_path_factory.mktemp('finished')
  result = training_runs.train(logdir, args=['--seed=3'])
  assert result.code == 0, result.output
  return logdir, result.output


def test_files(finished):
  """80 training steps are two updates, with as many of evaluation."""
  logdir, output = finished
  names = os.listdir(training_runs.run_dir(logdir))
  assert output.count('Computing on the ') == 1
  for name in ('config.yaml', 'scores.csv', 'metrics.jsonl', 'checkpoint'):
    assert name in names
  assert {'train', 'eval', 'model.ckpt-160.index'} <= set(names)
  assert not [x for x in names if x.startswith('.')]
  rows = training_runs.scores(logdir)
  assert [x[:2] for x in rows] == [
    ('train', 40),
    ('eval', 80),
    ('train', 120),
    ('eval', 160),
  ]
  for phase, step, score in rows:
    assert f'Return {score:.2f}.' in output
    steps = (step + 40) // 80 * 40
    assert f'{phase}, {steps} environment steps.' in output
  for number in (1, 2):
    steps = 40 * number
    line = f'Update {number}, {steps} environment steps: value target '
    assert output.count(line) == 1
  lines = training_runs.metrics(logdir)
  counts = {(x['global_step'], x['env_steps']) for x in lines}
  # Evaluation is not counted, as in the other systems.
  assert (160, 80) in counts
  assert counts <= {(x, x // 80 * 40 + min(x % 80, 40)) for x in range(161)}
  keys = {key.split('/')[-1] for x in lines for key in x}
  assert {'kl_change', 'penalty', 'mean_score', 'avg_policy_loss'} <= keys
  assert {'value_target', 'kl_cutoff_episodes'} <= keys


def test_same_seed_same_scores(finished, tmp_path):
  """Also when the environments are in processes of their own."""
  command = training_runs.command(tmp_path, args=['--seed=3'])
  result = training_runs.finish(training_runs.start(*command))
  assert result.code == 0, result.output
  assert training_runs.scores(tmp_path) == training_runs.scores(finished[0])


def test_resume(tmp_path, capsys):
  """The step goes on; there is nothing to do for a finished run."""

  def call(*args):
    args = ['--seed=4', '--noenv_processes', *args]
    return train_ppo.run(training_runs.command(tmp_path, args=args)[2:])

  assert call('--steps=40') == 0
  first = training_runs.scores(tmp_path)
  assert [x[1] for x in first] == [40, 80]
  assert call() == 0
  assert 'Continuing the run in' in capsys.readouterr().err
  rows = training_runs.scores(tmp_path)
  assert [x[1] for x in rows] == [40, 80, 120, 160] and rows[:2] == first
  steps = [x['global_step'] for x in training_runs.metrics(tmp_path)]
  assert steps == sorted(steps)
  run = training_runs.run_dir(tmp_path)
  assert {'model.ckpt-80.index', 'model.ckpt-160.index'} <= set(os.listdir(run))
  assert runs.load(run)[1].steps == 80
  timestamp = os.path.basename(run).partition('-')[0]
  assert call(f'--timestamp={timestamp}') == 0
  assert 'Nothing to do: the run in' in capsys.readouterr().err
  assert training_runs.scores(tmp_path) == rows


def test_everything_is_read_once(finished, tmp_path, monkeypatch):
  """By a command that continues a run: flags, settings and checkpoint."""
  logdir, _ = finished
  shutil.copytree(logdir, tmp_path / 'runs')
  seen = []

  def train(config, *unused, run, **more):
    seen.append((config.steps, run.step, run.checkpoint))
    yield from ()

  monkeypatch.setattr(train_ppo, 'train', train)
  calls = counting.count(
    monkeypatch,
    (flags, '_parse'),
    (flags, 'read'),
    (schema, 'parse_mapping'),
    (runs, 'claim'),
    (runs, '_try_env'),
    (configs, 'from_plain'),
    (files, 'read_plain'),
    (folder, 'lock'),
    (checkpoint, '_find_damaged_variables'),
  )
  words = training_runs.command(tmp_path / 'runs', {'steps': 120})[2:]
  assert train_ppo.run([*words, '--seed=3']) == 0
  ((steps, step, path),) = seen
  assert (steps, step) == (120, 160) and path.startswith(str(tmp_path))
  assert set(calls.values()) == {1} and len(calls) == 9


def test_steps_restored_from_the_checkpoint(finished):
  """Count of the filters: all training steps of both agents."""
  from agents.tools.tf1 import tf

  path = os.path.join(training_runs.run_dir(finished[0]), 'model.ckpt-160')
  reader = tf.train.NewCheckpointReader(path)
  assert reader.get_tensor('global_step') == 160
  assert reader.get_tensor('normalize_observ/count') == 80
  assert reader.get_tensor('memory/length').tolist() == [0, 0]
  names = reader.get_variable_to_shape_map()
  assert not [x for x in names if '_temporary' in x]
  assert any('Adam' in x for x in names)


@pytest.mark.slow
def test_sigterm_saves(tmp_path):
  """Exit code 0 and a checkpoint to go on from, and no orphans."""
  command = training_runs.command(tmp_path, {'steps': 1e6})
  process = training_runs.start(*command)
  try:
    training_runs.wait_for(process, 'Update 2 eval')
    children = find_children(process.pid)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert 'Repeat the command to continue.' in output
  finally:
    process.kill()
  assert children and not processes.wait_for_end(children)
  step = checkpoint.newest_step(training_runs.run_dir(tmp_path))
  assert step >= 80
  more = ['--noenv_processes', f'--steps={step // 2 + 40}']
  command = training_runs.command(tmp_path, {'steps': 1e6}, more)
  assert train_ppo.run(command[2:]) == 0
  steps = [x[1] for x in training_runs.scores(tmp_path)]
  # A training phase that was cut has no time left for a whole episode.
  every = range(40, steps[-1] + 1, 40)
  assert steps == [x for x in every if not x - 40 < step < x]
  assert steps[-1] >= step + 40


class StopAt(phases.Observer):
  """Asks to stop at a global step."""

  def __init__(self, global_step):
    self.asked = False
    self._step = global_step

  def step(self, phase, amount, global_step):
    self.asked = global_step == self._step


@pytest.mark.parametrize(
  'step, begin', [(60, 40), pytest.param(100, 100, marks=pytest.mark.slow)]
)
def test_stop_within_evaluation(step, begin, tmp_path, monkeypatch):
  """The evaluation begins anew; training goes on where it was."""
  config = training_runs.config()
  with config.unlocked:
    config.logdir = str(tmp_path)
  stop = StopAt(step)
  monkeypatch.setattr(stopping, 'requested', lambda: stop.asked)
  list(train_ppo.train(config, False, observers=lambda: [stop]))
  assert checkpoint.newest_step(config.logdir) == begin


def find_children(pid):
  """Processes that host environments."""
  with open(f'/proc/{pid}/task/{pid}/children') as file_:
    return [int(x) for x in file_.read().split()]


@pytest.mark.parametrize('kills', [pytest.param(5, marks=pytest.mark.slow)])
def test_resume_after_being_killed(tmp_path, kills):
  """SIGKILL at random moments; every start goes on without complaint."""
  params = {'steps': 1e6}
  random = np.random.RandomState(kills)
  last = 0
  for _ in range(kills):
    process = training_runs.start(
      *training_runs.command(tmp_path, params, ['--noenv_processes'])
    )
    try:
      training_runs.wait_for(process, 'eval')
      time.sleep(random.uniform(0, 5))
      assert process.poll() is None
    finally:
      process.kill()
      process.communicate()
    step = checkpoint.newest_step(training_runs.run_dir(tmp_path))
    assert step >= last
    last = step
  result = training_runs.train(tmp_path, params, [f'--steps={last // 2 + 80}'])
  assert result.code == 0, result.output
  steps = [x[1] for x in training_runs.scores(tmp_path)]
  assert steps == list(range(40, 40 * len(steps) + 1, 40))


PENDULUM = ['--config=default', '--env=Pendulum-v1']
CARTPOLE = ['--config=cartpole']
BAD = [
  ([], 'Give --config'),
  (['--config=pybullet_pendulun'], 'Did you mean pybullet_pendulum'),
  (['--config=default'], 'names no environment'),
  (['--config=default', '--env=Pendulun-v1'], 'Did you mean Pendulum-v1'),
  ([*CARTPOLE, '--params={network: recurrent_gaussian}'], 'discrete actions'),
  ([*PENDULUM, '--params=[1]'], 'give a mapping'),
  ([*PENDULUM, '--params={a: ['], 'not valid YAML'),
  ([*PENDULUM, '--params={num_agnets: 2}'], 'Did you mean num_agents'),
  ([*PENDULUM, '--params={network: "sys:path"}'], 'of a function or class'),
  ([*PENDULUM, '--params={weight_summaries: {a: "*"}}'], "'*' is none"),
  ([*PENDULUM, '--params={weight_summaries: {a: 3}}'], 'valid string'),
  ([*PENDULUM, '--steps=-5'], "'steps' is -5"),
  ([*PENDULUM, '--step=5'], 'Flag --step is unknown'),
  (
    [*PENDULUM, '--threads=0'],
    'Flag --threads is 0: ',
  ),
  ([*PENDULUM, '--threads=100000'], 'less than or equal to 1024'),
]


@pytest.mark.parametrize('args, message', BAD)
def test_bad_input(capsys, tmp_path, args, message):
  """One sentence and exit code 2; nothing appears on disk."""
  logdir = tmp_path / 'runs'
  error = training_runs.fail(capsys, train_ppo, [*args, f'--logdir={logdir}'])
  assert message in error
  assert not logdir.exists()


@pytest.mark.parametrize(
  'name, code, message',
  [
    ('Broken', 1, 'constructor with KeyError'),
    pytest.param(
      *('Growing', 1, 'returned an observation of shape (4,) in step 4'),
      marks=pytest.mark.slow,
    ),
    pytest.param(
      *('Faulty', 1, 'failed in step 5 with ZeroDivisionError'),
      marks=pytest.mark.slow,
    ),
    pytest.param(
      *('Exit', 1, 'failed in step 5 with SystemExit(0)'),
      marks=pytest.mark.slow,
    ),
    ('Rewards', 1, 'returned reward array([1., 1.]) in step 5'),
    ('Brokn', 2, 'Did you mean OddBroken-v0'),
    ('NaN', 1, 'is not usable: The observation in step 1 is NaN; return'),
  ],
)
def test_environments_that_make_mistakes(capsys, tmp_path, name, code, message):
  """One sentence; the traceback of the environment below it, if it raised."""
  env = f'{odd_gymnasium.MODULE}:Odd{name}-v0'
  args = training_runs.command(str(tmp_path / 'runs'), env=env)[2:]
  assert train_ppo.run([*args, '--noenv_processes']) == code
  _, _, error = capsys.readouterr().err.rpartition('Error: Env')
  sentence, *below = error.strip().splitlines()
  assert message in sentence
  raised = name in ('Broken', 'Faulty', 'Exit')
  assert bool(below) == raised and error.count('Traceback') == raised
  assert (tmp_path / 'runs').exists() == (
    code == 1 and name not in ('Broken', 'NaN')
  )


def test_unwritable_logdir(capsys, tmp_path):
  (tmp_path / 'file').write_text('')
  error = training_runs.fail(
    capsys, train_ppo, [*PENDULUM, f'--logdir={tmp_path}/file/logdir']
  )
  assert 'Cannot write to the folder' in error


def test_damaged_configuration(capsys, tmp_path):
  """It is named, and stays as it is."""
  path = tmp_path / '20200101T000000-default' / 'config.yaml'
  path.parent.mkdir()
  path.write_text('a: [')
  error = training_runs.fail(
    capsys, train_ppo, [*PENDULUM, f'--logdir={tmp_path}']
  )
  assert str(path) in error and path.read_text() == 'a: ['
  assert os.listdir(path.parent) == ['config.yaml']


def test_exit_code_of_the_program(tmp_path):
  """No traceback either."""
  result = training_runs.finish(
    training_runs.start('-m', 'agents.train_ppo', '--config=default')
  )
  assert result.code == 2 and 'Traceback' not in result.output
  assert result.output.strip().splitlines()[-1].startswith('Error: ')


@pytest.mark.slow
@pytest.mark.needs('pybullet')
def test_training_without_a_folder(tmp_path, monkeypatch):
  """With a recurrent policy, on PyBullet; nothing is written."""
  monkeypatch.chdir(tmp_path)
  config = training_runs.config(
    network='recurrent_gaussian', steps=40, env='InvertedPendulumBulletEnv-v0'
  )
  scores = list(train_ppo.train(config, False))
  # One per step; the untrained pendulum falls within some steps.
  assert len(scores) == 2 and all(2 < x <= 20 for x in scores)
  assert not os.listdir(tmp_path)


def test_training_with_zeros_and_another_optimizer():
  """No evaluation, no penalty: one score per update."""
  zeros = dict.fromkeys(
    ('eval_episodes', 'kl_init_penalty', 'kl_cutoff_coef', 'gae_lambda'), 0
  )
  config = training_runs.config(**zeros, optimizer='RMSPropOptimizer')
  scores = list(train_ppo.train(config, False))
  assert len(scores) == 2 and np.isfinite(scores).all()


class Still:
  """Environment in which nothing ever happens."""

  observation_space = action_space = gymnasium.spaces.Box(-1, 1, (1,))

  def reset(self):
    return np.zeros(1, np.float32)

  def step(self, unused_action):
    return np.zeros(1, np.float32), 0.0, False, {}


def test_nothing_to_learn_from():
  """The original ends, too; here with a sentence instead of an assertion."""
  config = training_runs.config()
  with config.unlocked:
    config.env = Still
  with pytest.raises(errors.EnvError, match='did not change the policy'):
    list(train_ppo.train(config, False))


def test_network_that_is_replaced():
  """Own configurations need not name one for discrete actions."""
  config = training_runs.config(steps=40)
  with config.unlocked:
    config.env = 'CartPole-v1'
  assert len(list(train_ppo.train(config, False))) == 2


def test_threads(monkeypatch):
  """One per core of this process, unless somebody says otherwise."""

  def choose(cores, *args):
    usual = mpi.HostShare(0, 1, cores).threads
    options = train_ppo._session_options(usual, *args)
    assert options.inter_op_parallelism_threads == 1
    assert options.use_per_session_threads
    return options.intra_op_parallelism_threads

  monkeypatch.delenv('TF_NUM_INTRAOP_THREADS', raising=False)
  monkeypatch.delenv('TF_NUM_INTEROP_THREADS', raising=False)
  assert choose(8.0) == 8 and choose(0.4) == 1
  assert choose(8.0, 5) == 5
  monkeypatch.setenv('TF_NUM_INTRAOP_THREADS', '4')
  # TensorFlow reads the variable where nothing else is set.
  assert choose(8.0) == 0 and choose(8.0, 5) == 5


class Second(test_algorithm.Comm):
  """The first process has restored sums that are not zero."""

  def Get_rank(self):
    return 1

  def bcast(self, value):
    if not isinstance(value, list):
      return value
    is_sum = [x.dtype == np.float32 and x.shape == () and x == 0 for x in value]
    return [1e6 if y else x for x, y in zip(value, is_sum)]


def test_scores_of_finished_episodes_count_once():
  config = training_runs.config(eval_episodes=0, steps=40)
  (score,) = train_ppo.train(config, False, Second())
  # Rewards of the pendulum are negative.
  assert score < 0


def test_agents_that_cannot_be_shared():
  comm = types.SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 3)
  with pytest.raises(
    errors.UsageError, match='cannot share num_agents 2 evenly'
  ):
    next(train_ppo.train(training_runs.config(), False, comm))


def test_own_train_function():
  """Parts of the original's `train`, which programs of users copy."""
  config = AttrDict(
    configs.default(),
    env='Pendulum-v1',
    num_agents=2,
    update_every=2,
    update_epochs=1,
    max_length=5,
  )
  tf.reset_default_graph()
  make = functools.partial(train_ppo._create_environment, config)
  env = utility.define_batch_env(make, 2, False)
  graph = utility.define_simulation_graph(env, config.algorithm, config)
  loop = train_ppo._define_loop(graph, None, 10, 10)
  with tf.Session() as sess:
    utility.initialize_variables(sess, None, None)
    scores = list(loop.run(sess, None, 40))
  env.close()
  # Training and evaluation, twice; each second costs less than 20.
  assert len(scores) == 4 and all(-100 < x < 0 for x in scores)


def test_stop_of_a_run_that_saves_nothing(monkeypatch, capsys):
  """Repeating the command would not continue it."""

  def stop(*unused):
    raise stopping.StopRequested

  monkeypatch.setattr(train_ppo.life, 'start', stop)
  assert train_ppo.run(['--config=pybullet_pendulum']) == 0
  assert 'Nothing was saved' in capsys.readouterr().err
