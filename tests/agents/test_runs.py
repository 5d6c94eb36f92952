"""Which run a command line begins or continues, and what it may change."""

import functools
import os

import gymnasium
import numpy as np
import pytest

from agents import configs, networks, runs, utility
from agents.envs import spaces
from agents.run import checkpoint, errors, files
from tests import counting, scripted_envs
from tests.agents import training_runs
from tests.agents.envs import odd_gymnasium

SMALL = dict(env='Pendulum-v1', steps=60, update_every=2, eval_episodes=2)


def make_run(logdir, time, step=0, name='default', **overrides):
  """Store a run as training does, with a checkpoint of a step."""
  config = runs.prepare(name, {**SMALL, **overrides})
  run = os.path.join(logdir, f'{time}-{name}')
  utility.save_config(config, run)
  if step:
    training_runs.write_checkpoint(run, step)
  return run


def prepare(logdir, timestamp=None, name='default', **overrides):
  """Configuration that a command would train with."""
  overrides = {**SMALL, **overrides}
  with runs.claim(name, str(logdir), timestamp, overrides) as run:
    return run.config


def refuse(function, *args, **kwargs):
  """Sentence of the error that a call leads to."""
  with pytest.raises(errors.UsageError) as error:
    function(*args, **kwargs)
  text = str(error.value)
  assert '\n' not in text
  return text


def test_new_run(tmp_path):
  """It is named by time and configuration."""
  config = prepare(tmp_path)
  folder, name = os.path.split(config.logdir)
  assert folder == str(tmp_path) and name.endswith('-default')
  assert config.steps == 60 and os.listdir(config.logdir) == ['lock']
  assert prepare(tmp_path, '7').logdir == str(tmp_path / '7-default')
  assert runs.prepare('default', SMALL).logdir is None


def test_folder_without_a_name():
  """As of `--logdir=$LOGDIR`, which would save nothing."""
  assert 'logdir is empty; give the path' in refuse(prepare, '')


def own_config():
  config = configs.pybullet_pendulum()
  config.update(num_agents=2, network=networks.feed_forward_gaussian)
  return config


@pytest.mark.parametrize('name', ['own_config', f'{__name__}:own_config'])
def test_function_of_the_user(name, tmp_path, monkeypatch):
  """It is a configuration, as are functions added to the original's file."""
  monkeypatch.setattr(configs, 'own_config', own_config, raising=False)
  config = prepare(tmp_path, '1', name)
  assert config.logdir == str(tmp_path / '1-own_config')
  assert (config.env, config.num_agents) == ('Pendulum-v1', 2)
  assert config.max_length == 200
  utility.save_config(config, config.logdir)
  assert prepare(tmp_path, None, name).logdir == config.logdir
  # The user's values are given ones.
  monkeypatch.setattr(
    configs, 'own_config', lambda: dict(own_config(), max_length=3)
  )
  if name == 'own_config':
    assert prepare(tmp_path, None, name).logdir != config.logdir


@pytest.mark.parametrize(
  'function, words',
  [
    ('tests.agents.test_runs:refuse', 'is not a function without arguments'),
    ('tests.agents.test_runs:SMALL', 'is not a function without arguments'),
    ('agents.configs:describe', 'returns list; return a mapping'),
    ('tests.agents.test_runs:absent', 'Cannot find'),
  ],
)
def test_wrong_functions_of_the_user(function, words):
  assert words in refuse(runs.prepare, function)


def test_newest_unfinished_run_is_continued(tmp_path):
  make_run(tmp_path, '1', 40)
  newest = make_run(tmp_path, '2', 50)
  make_run(tmp_path, '3', name='pybullet_ant')
  assert prepare(tmp_path).logdir == newest
  assert checkpoint.newest_step(newest) == 50


def test_finished_run(tmp_path):
  """It is chosen again; more steps continue it, other settings do not."""
  run = make_run(tmp_path, '1', 60)
  for timestamp in (None, '1'):
    with claimed(tmp_path, timestamp) as chosen:
      assert chosen.folder == run
      assert 'raise total_env_steps' in chosen.over
  with claimed(tmp_path, steps=70) as chosen:
    assert chosen.folder == run and chosen.config.steps == 70
    assert not chosen.over
    assert chosen.changes == ['steps 60.0 -> 70.0']
  assert prepare(tmp_path, learning_rate=0.5).logdir != run


def test_steps_at_which_runs_end():
  """Training steps, whatever evaluation there is between."""
  settings = dict(max_length=10, update_every=2, eval_episodes=3)
  for steps, last in [(1, 1), (19, 19), (20, 50), (21, 51), (40, 100)]:
    config = runs.prepare('default', {**SMALL, **settings, 'steps': steps})
    assert runs.total_steps(config) == last
    assert runs.training_steps(config, last) == steps
    assert runs.training_steps(config, 100 + 45) == 40 + 20


def test_settings_that_may_change(tmp_path):
  """A run goes on with another learning rate, and says so."""
  run = make_run(tmp_path, '1', 40, learning_rate=0.5)
  with claimed(tmp_path, learning_rate=0.25) as chosen:
    assert chosen.folder == run and chosen.config.learning_rate == 0.25
    assert chosen.changes == ['learning_rate 0.5 -> 0.25']
  # What is left out stays.
  assert prepare(tmp_path).learning_rate == 0.5


def test_folder_of_a_run(tmp_path):
  """Nothing but what is given has to fit."""
  run = make_run(tmp_path, '1', 40, seed=3, num_agents=2)
  with runs.claim('default', run, overrides={'steps': 90}) as chosen:
    assert chosen.folder == run and chosen.config.seed == 3
    assert chosen.config.env == 'Pendulum-v1' and chosen.config.steps == 90
  refuse(runs.claim('default', run, overrides={'seed': 4}).__enter__)


def test_folder_of_a_run_of_another_configuration(tmp_path):
  """It is not continued as if it were of the given one."""
  run = make_run(tmp_path, '1', 40, name='pybullet_pendulum', max_length=30)
  moved = os.path.join(tmp_path, 'moved')
  for folder in (moved, run):
    os.rename(run if folder == moved else moved, folder)
    text = refuse(runs.claim('pybullet_ant', folder).__enter__)
    assert 'is not one of --config=pybullet_ant (env Pendulum-v1 ' in text
    assert 'omit --config' in text
  for name in ('pybullet_pendulum', None):
    with runs.claim(name, run) as chosen:
      assert chosen.config.max_length == 30
      assert chosen.reason.endswith('given by --logdir.')
  with runs.claim('default', run) as chosen:
    assert chosen.config.max_length == 30
    assert 'those of pybullet_pendulum, not of default' in chosen.reason


def make_env(gravity):
  """Function as a script has it, in which only a global differs."""
  code = 'def make():\n  return create("Pendulum-v1", g=GRAVITY)\n'
  place = {'__name__': '__main__', 'create': gymnasium.make}
  exec(code, {**place, 'GRAVITY': gravity}, place)
  place['make'].__globals__.update(place)
  return place['make']


def test_environment_functions_that_change(tmp_path):
  """Also when only what they use from their module does."""

  def claim(gravity):
    given = {**SMALL, 'env': make_env(gravity)}
    return runs.claim('default', str(tmp_path), None, given)

  with claim(9.8) as run:
    runs.store(run)
    training_runs.write_checkpoint(run.folder, 20)
  with claim(9.8) as same:
    assert same.folder == run.folder
  with claim(3.7) as other:
    assert other.folder != run.folder
    assert 'has other settings (env <' in other.reason
  given = {**SMALL, 'env': make_env(3.7)}
  text = refuse(runs.claim('default', run.folder, None, given).__enter__)
  assert 'cannot change env: ' in text


def test_environments_that_are_objects(tmp_path):
  """Their names are stored; the same object continues the run."""
  env = gymnasium.make('Pendulum-v1')
  small = {**SMALL, 'env': env}
  with runs.claim('default', str(tmp_path), None, small) as run:
    assert run.config.num_agents == 1
    runs.store(run)
    training_runs.write_checkpoint(run.folder, 20)
    stored = run.folder
  assert env.step([0.0])
  with runs.claim('default', str(tmp_path), None, small) as run:
    assert run.folder == stored and run.config.env is env
  refuse(runs.claim('default', stored).__enter__)
  refuse(runs.claim, 'default', None, None, {**small, 'num_agents': 2})


def test_environments_that_change(tmp_path):
  """A trained run stays as it is when they observe something else."""

  class Env(scripted_envs.VectorEnv):
    size = 2

    def __init__(self):
      super().__init__()
      self.observation_space = spaces.box([-1] * self.size, [1] * self.size)
      self._observe = lambda t: np.zeros(self.size, np.float32)

  def claim(**more):
    given = {**SMALL, 'env': Env, **more}
    return runs.claim('default', str(tmp_path), None, given)

  with claim() as run:
    runs.store(run)
    training_runs.write_checkpoint(run.folder, 20)
  with claim(steps=80) as same:
    assert same.folder == run.folder
  Env.size = 3
  assert 'have changed' in refuse(claim(steps=80).__enter__)


def test_two_budgets():
  assert runs.add_budget({}, 90) == {'steps': 90}
  assert 'not both' in refuse(runs.add_budget, {'steps': 1}, 90)
  assert 'total_env_steps is -1' in refuse(runs.add_budget, {}, -1)


def test_older_run_by_its_timestamp(tmp_path):
  run = make_run(tmp_path, '1', 40, seed=3)
  make_run(tmp_path, '2', 80)
  config = prepare(tmp_path, '1')
  assert config.logdir == run and config.seed == 3
  assert prepare(run, '1').logdir == run
  text = refuse(prepare, run, '2')
  assert '--timestamp is 2, but --logdir is already the log directory' in text
  assert os.path.basename(run) not in os.listdir(run)


def test_stored_values_count_on_resume(tmp_path):
  """By its timestamp, a run goes on with what it was begun with."""
  make_run(tmp_path, '1', 40, num_agents=2, network='recurrent_gaussian')
  config = prepare(tmp_path, '1')
  assert config.num_agents == 2
  assert config.network == 'recurrent_gaussian'
  assert prepare(tmp_path, '1', num_agents=2).num_agents == 2


@pytest.mark.parametrize('change', [dict(num_agents=3), dict(seed=1)])
def test_changes_are_refused(tmp_path, change):
  make_run(tmp_path, '1', 40, num_agents=2)
  text = refuse(prepare, tmp_path, '1', **change)
  assert f'cannot change {next(iter(change))}: ' in text


def claim(logdir, timestamp=None, **overrides):
  """Name of the folder of the run of a command, and its first line."""
  with claimed(logdir, timestamp, **overrides) as run:
    assert run.folder == run.config.logdir
    assert run.folder in run.reason and '\n' not in run.reason
    return os.path.basename(run.folder), run.reason


def claimed(logdir, timestamp=None, **overrides):
  return runs.claim('default', str(logdir), timestamp, {**SMALL, **overrides})


def test_the_newest_run_with_the_same_settings_goes_on(tmp_path):
  """Another seed, or no seed, or other parameters begin another run."""
  make_run(tmp_path, '1', 40, seed=3)
  make_run(tmp_path, '2', 40, seed=3)
  make_run(tmp_path, '3', 120, seed=3)
  make_run(tmp_path, '4', 40, num_agents=2)
  name, reason = claim(tmp_path, seed=3)
  assert name == '2-default' and 'Continuing the run' in reason
  assert claim(tmp_path, num_agents=2)[0] == '4-default'
  name, reason = claim(tmp_path, seed=4)
  assert not os.listdir(tmp_path / name) or os.listdir(tmp_path / name) == [
    'lock'
  ]
  assert 'Starting a new run' in reason
  assert '4-default has other settings (num_agents 2 instead of 30' in reason
  assert '2-default has other settings (seed 3 instead of 4)' in reason
  assert '3-default' in reason and '1 more cannot' in reason


def test_a_file_of_another_program(tmp_path):
  """It keeps no command from starting a run beside it."""
  files.write_yaml(str(tmp_path / '1-cartpole/config.yaml'), {'lr': 0.1})
  with runs.claim('cartpole', str(tmp_path)) as run:
    assert os.path.basename(run.folder) != '1-cartpole'
    assert '1-cartpole has other settings (env unset instead' in run.reason


def test_first_lines(tmp_path):
  assert 'first one' in claim(tmp_path)[1]
  make_run(tmp_path, '1', 120)
  assert 'has these settings' in claim(tmp_path)[1]
  assert '1-default is finished' in claim(tmp_path, discount=0.5)[1]
  assert 'given by --timestamp' in claim(tmp_path, '1')[1]
  assert 'given by --timestamp' in claim(tmp_path, '7')[1]
  with runs.claim('default', None, None, SMALL) as run:
    assert run.config.logdir is None and 'without --logdir' in run.reason


def test_everything_is_read_once(tmp_path, monkeypatch):
  """Settings, newest checkpoint and environment, however the run is chosen."""
  make_run(tmp_path, '1', 40)
  calls = counting.count(
    monkeypatch,
    (files, 'read_yaml'),
    (checkpoint, '_find_damaged_variables'),
    (runs, '_try_env'),
  )
  for timestamp in (None, '1'):
    calls.clear()
    with runs.claim('default', str(tmp_path), timestamp, SMALL) as run:
      assert run.step == 40 and run.settings and run.config
    assert set(calls.values()) == {1} and len(calls) == 3


def test_two_commands_at_once(tmp_path):
  """Each has a run of its own, also when both begin in the same second."""
  run = make_run(tmp_path, '1', 40)
  with claimed(tmp_path) as first, claimed(tmp_path) as second:
    assert first.folder == run and second.folder != run
    assert '1-default is in use by another process' in second.reason
    assert prepare(tmp_path).logdir not in (first.folder, second.folder)
    with claimed(tmp_path) as third:
      assert third.folder not in (first.folder, second.folder)
    text = refuse(claimed(tmp_path, '1').__enter__)
    assert 'Another process is using the run' in text
  assert claim(tmp_path)[0] == '1-default'


def test_nothing_is_left_of_a_run_that_is_refused(tmp_path):
  """Not even its folder; an older one stays as it is."""
  words = odd_gymnasium.register('Words', words=True)
  for overrides in ({'env': 'Nothing-v0'}, {'env': words}):
    text = refuse(claimed, tmp_path / 'new', **overrides)
    assert overrides['env'] in text
    assert not os.listdir(tmp_path)
  run = make_run(tmp_path, '1', 40)
  refuse(claimed(tmp_path, '1', seed=5).__enter__)
  assert os.path.exists(os.path.join(run, 'config.yaml'))
  # Nor are the user's own files in a folder that existed before.
  own = tmp_path / '2-default' / 'notes.txt'
  own.parent.mkdir()
  own.write_text('keep')
  with pytest.raises(errors.UsageError), claimed(tmp_path, '2'):
    raise errors.UsageError('Refused later.')
  assert own.read_text() == 'keep'


def test_values_of_later_versions_do_not_matter(tmp_path):
  """What the stored run does not know, unless it is asked for."""
  run = make_run(tmp_path, '1', 40)
  path = os.path.join(run, 'config.yaml')
  with open(path) as file_:
    lines = [x for x in file_ if not x.startswith('optimizer')]
  with open(path, 'w') as file_:
    file_.writelines(lines)
  assert prepare(tmp_path).logdir == run
  other = prepare(tmp_path, optimizer='RMSPropOptimizer')
  assert other.logdir != run


def test_damaged_run_is_refused(tmp_path):
  """It is neither continued nor passed over."""
  run = make_run(tmp_path, '1', 40)
  with open(os.path.join(run, 'config.yaml'), 'w') as file_:
    file_.write('a: [')
  assert 'Cannot read' in refuse(prepare, tmp_path)
  assert 'Cannot read' in refuse(runs.load, run)


@pytest.mark.parametrize('name', ['steps', 'update_every', 'max_length'])
def test_half_of_a_file(name, tmp_path):
  """What is left may be a mapping with the settings of the command."""
  path = os.path.join(make_run(tmp_path, '1', 40), 'config.yaml')
  stored = files.read_yaml(path)
  del stored[name]
  files.write_yaml(path, stored)
  given = {x: y for x, y in SMALL.items() if x != name}
  for timestamp in (None, '1'):
    with (
      pytest.raises(errors.UsageError, match=f'no {name}|not a PPO run'),
      runs.claim('default', str(tmp_path), timestamp, given),
    ):
      pass


def test_settings_that_lack_something(tmp_path):
  """As after a flipped bit: the sentence says that they are damaged."""
  run = make_run(tmp_path, '1', 40)
  stored = files.read_yaml(os.path.join(run, 'config.yaml'))
  del stored['env']
  assert 'damaged' in refuse(configs.from_plain, stored, run=run)
  for wrong in ({'shapa': [1], 'low': 0}, {'n': 'x'}, {'dict': 3}, {}):
    assert 'damaged' in refuse(spaces.from_plain, wrong)


def test_nothing_but_damaged_checkpoints(tmp_path):
  """The files are named."""
  run = make_run(tmp_path, '1', 40)
  path = os.path.join(run, 'model.ckpt-40')
  os.truncate(path + '.index', 10)
  for function, args in ((prepare, [tmp_path]), (prepare, [tmp_path, '1'])):
    text = refuse(function, *args)
    assert f'All checkpoints are damaged: {path} (its index' in text
  # Other settings have nothing to do with it.
  assert prepare(tmp_path, num_agents=3).logdir != run


def test_load(tmp_path):
  """A run, or the folder of a single one."""
  assert 'no run in' in refuse(runs.load, tmp_path)
  run = make_run(tmp_path, '1')
  assert runs.load(run)[0] == runs.load(tmp_path)[0] == run
  assert runs.load(run)[1].env == 'Pendulum-v1'
  other = make_run(tmp_path, '2')
  text = refuse(runs.load, tmp_path)
  assert '2 runs' in text and f'--logdir={other}' in text


PARAMS = [
  ({'num_agnets': 1}, 'Did you mean num_agents'),
  ({'num_agents': 'two'}, "'num_agents' is 'two': "),
  ({'num_agents': 1.5}, 'a whole number'),
  ({'num_agents': 0}, 'greater than or equal to 1'),
  ({'num_agents': True}, 'a number'),
  ({'learning_rate': -1}, 'greater than 0'),
  ({'use_gpu': 1}, 'boolean'),
  ({'policy_layers': 5}, 'list'),
  ({'policy_layers': ['x']}, 'number'),
  ({'policy_layers': [8, 0]}, 'greater than or equal to 1'),
  ({'policy_layers': []}, 'at least 1 item'),
  ({'steps': float('inf')}, 'finite'),
  ({'max_length': float('nan')}, 'a whole number'),
  ({'network': 'no.such:net'}, "Cannot find 'no.such:net'"),
  ({'network': 'agents.networks:missing'}, 'Cannot find'),
  ({'network': 'lstm'}, 'give one of feed_forward_gaussian'),
  ({'optimizer': 'MomentumOptimizer'}, 'give one of AdadeltaOptimizer'),
  ({'eval_episodes': -1}, 'greater than or equal to 0'),
  ({'seed': 'x'}, 'number'),
]


def test_runs_of_others_are_refused(tmp_path):
  """Those of other versions, and of other programs."""
  run = make_run(tmp_path, '1', 40)
  filename = os.path.join(run, 'config.yaml')
  stored = files.read_yaml(filename)
  for change, words in (
    ({'version': 2}, 'another version'),
    ({'version': None}, 'another version'),
    ({'learning_rate': 'x'}, "'learning_rate' is 'x'"),
  ):
    files.write_yaml(filename, {**stored, **change})
    assert words in refuse(runs.load, run)
  files.write_yaml(filename, {'version': 1, 'tasks': []})
  assert 'not a PPO run' in refuse(runs.load, run)


@pytest.mark.parametrize('params, message', PARAMS)
def test_bad_parameters(params, message):
  call = functools.partial(runs.prepare, 'default', overrides=params)
  assert message in refuse(call)


def test_good_parameters():
  overrides = dict(
    SMALL,
    num_agents=4.0,
    init_logstd=-1.5,
    kl_init_penalty=0.5,
    policy_layers=(3, 4),
    optimizer='GradientDescentOptimizer',
    gae_lambda=0.95,
    train_on_agent_action=True,
    seed=0,
  )
  config = runs.prepare('default', overrides=overrides)
  assert config.num_agents == 4 and isinstance(config.num_agents, int)
  assert config.init_logstd == -1.5 and config.kl_init_penalty == 0.5
  assert config.policy_layers == [3, 4]
  assert config.optimizer == 'GradientDescentOptimizer'
  assert config.gae_lambda == 0.95 and config.seed == 0
  assert config.train_on_agent_action is True


@pytest.mark.parametrize(
  'name', ['kl_cutoff_coef', 'kl_init_penalty', 'eval_episodes', 'gae_lambda']
)
def test_parameters_that_may_be_zero(name):
  config = runs.prepare('default', overrides={**SMALL, name: 0})
  assert config[name] == 0


@pytest.mark.parametrize(
  'name, message',
  [
    (None, 'Give --config'),
    ('pybullet_pendulun', 'Did you mean pybullet_pendulum'),
    ('functools', 'is unknown'),
    ('describe', 'returns list'),
    ('default', 'names no environment'),
  ],
)
def test_configurations(name, message):
  assert message in refuse(runs.prepare, name)


def test_folder_of_a_run_without_its_configuration(tmp_path):
  run = make_run(tmp_path, '1', 40, seed=3)
  with runs.claim(None, run, overrides={'steps': 90}) as chosen:
    assert chosen.folder == run and chosen.config.seed == 3
  assert 'Give --config' in refuse(runs.claim, None, str(tmp_path))
