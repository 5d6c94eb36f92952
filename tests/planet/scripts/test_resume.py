"""Runs that go on with other parameters than they began with."""

import json

import numpy as np
import pytest

from agents.run import checkpoint, errors, files, references
from planet.scripts import (
  configs,
  environments,
  parameters,
  presets,
  resume,
  tasks,
  train,
)
from planet.training import utility
from tests import counting

BEGUN = {'tasks': ['dummy'], 'planner_topk': 3, 'num_units': 20}


@pytest.fixture(autouse=True)
def stopped_run(monkeypatch):
  """The runs of these tests stopped at step 120."""
  monkeypatch.setattr(
    checkpoint, 'find_variables', lambda x, *more: f'{x}/model.ckpt-120'
  )


def begin(folder, **params):
  """Write the configuration of a run."""
  params = {**BEGUN, **params}
  source = {'version': 1, 'config': 'debug', 'params': params, 'seed': 1}
  files.write_yaml(str(folder / 'config.yaml'), source)


def go_on(folder, config='debug', seed=None, **params):
  """Continue the run with a command line; returns configuration and lines."""
  args = train.Arguments(config=config, params=params, seed=seed)
  result = resume.define_config(str(folder), args)
  utility.save_config(result, str(folder))
  return result, '\n'.join(result.report)


CHANGES = [
  ('main_learning_rate', 1e-3, 1e-4),
  ('divergence_scale', 1.0, 0.5),
  ('reward_loss_scale', 10.0, 5.0),
  ('collect_every', 5000, 100),
  ('train_steps', 10, 20),
  ('loader', 'recent', 'reload'),
  ('planner_horizon', 12, 7),
  ('planner_topk', 3, 4),
  ('train_action_noise', 0.3, 0.1),
  ('max_steps', 500, 1000),
  ('checkpoint_minutes', 15, 5.0),
  ('batch_shape', [5, 10], [4, 10]),
  ('image_bits', 5, 8),
]


@pytest.mark.parametrize('name, old, new', CHANGES)
def test_changes_take_effect_and_are_recorded(name, old, new, tmp_path):
  """Printed as old -> new, and kept in config.yaml with their step."""
  begin(tmp_path)
  config, lines = go_on(tmp_path, **{name: new})
  assert f'{name}: {old} -> {new}' in lines and '120' in lines
  stored = utility.load_config(str(tmp_path))
  assert stored.params == {**BEGUN, name: new}
  assert stored.changes == [{'step': 120, name: [old, new]}]
  assert config.source.params[name] == new
  _, lines = go_on(tmp_path, **{name: new})
  assert '->' not in lines
  assert utility.load_config(str(tmp_path)).changes == stored.changes


def test_changed_values_reach_the_configuration(tmp_path):
  begin(tmp_path)
  config, _ = go_on(tmp_path, main_learning_rate=1e-4, train_steps=20)
  assert config.optimizers.main.learning_rate == 1e-4
  assert config.train_steps == 20 and config.num_units == 20


def test_everything_is_checked_once(tmp_path, monkeypatch):
  """Of a new run as of a stored one: all values together."""
  names = 'check', 'choose_defaults', 'complete', 'check_together', 'check_env'
  calls = counting.count(
    monkeypatch,
    *((parameters, x) for x in names),
    (configs, 'build'),
    (tasks, 'define_all'),
    (files, 'read_yaml'),
    (checkpoint, 'find_variables'),
    (references, 'resolve'),
  )
  expected = {
    'check': 1,
    'choose_defaults': 1,
    'complete': 1,
    'check_together': 1,
    'build': 1,
    'define_all': 1,
    'find_variables': 1,
  }
  params = {'tasks': ['dummy'], 'isolate_envs': 'none', 'num_units': 20}
  args = train.Arguments(str(tmp_path), 'debug', params)
  train.check(args)
  resume.define_config(str(tmp_path), args)
  assert calls == expected
  begin(tmp_path)
  calls.clear()
  train.check(args)
  resume.define_config(str(tmp_path), args)
  assert calls == {**expected, 'check_env': 1, 'read_yaml': 1}


def test_list_of_changes_grows(tmp_path):
  begin(tmp_path)
  go_on(tmp_path, planner_topk=4)
  _, lines = go_on(tmp_path, planner_topk=2, max_steps=900)
  assert utility.load_config(str(tmp_path)).changes == [
    {'step': 120, 'planner_topk': [3, 4]},
    {'step': 120, 'max_steps': [500, 900], 'planner_topk': [4, 2]},
  ]
  assert 'planner_topk: 4 -> 2' in lines


def test_what_is_not_given_is_kept_and_named(tmp_path):
  begin(tmp_path)
  config, lines = go_on(tmp_path, tasks=['dummy'])
  assert config.source.params == BEGUN and 'changes' not in config.source
  assert 'num_units: 20' in lines and 'planner_topk: 3' in lines
  assert 'tasks' not in lines
  assert not go_on(tmp_path, **BEGUN)[1]


def test_presets_of_later_versions_change_nothing(tmp_path, monkeypatch):
  """A run keeps all of its values, not only those of its commands."""
  begin(tmp_path)
  before, _ = go_on(tmp_path)
  later = {**presets.PRESETS['debug'], 'planner_amount': 77, 'model': 'ssm'}
  monkeypatch.setitem(presets.PRESETS, 'debug', later)
  again, lines = go_on(tmp_path)
  assert '->' not in lines and again.source['values'] == before.source['values']
  changed, lines = go_on(tmp_path, planner_amount=77)
  assert changed.source['values']['planner_amount'] == 77 and '-> 77' in lines


def test_equal_values_are_no_change(tmp_path):
  """Defaults may be spelt out, and numbers written in other ways."""
  begin(tmp_path, max_steps=5e4)
  same = dict(num_units=20.0, max_steps=50000, model='rssm', model_size=10)
  config, lines = go_on(tmp_path, **same)
  assert '->' not in lines and 'changes' not in config.source


REFUSED = [
  ({'num_units': 30}, 'num_units: 20 -> 30', 'variables'),
  ({'model': 'ssm'}, 'model: rssm -> ssm', 'were trained'),
  ({'activation': 'elu'}, 'activation: relu -> elu', 'trained with it'),
  ({'tasks': ['cup_catch']}, r"\['dummy'\] -> \['cup_catch'\]", 'episodes'),
  ({'action_repeat': 2}, 'action_repeat: 50 -> 2', 'episodes mean'),
  ({'image_size': 32, 'max_steps': 9}, 'image_size: 64 -> 32', 'episodes'),
]


@pytest.mark.parametrize('params, change, reason', REFUSED)
def test_refused_changes(params, change, reason, tmp_path):
  """With the reason; the file stays as it is."""
  begin(tmp_path)
  before = (tmp_path / 'config.yaml').read_text()
  with pytest.raises(errors.UsageError, match=f'{change} .*{reason}') as info:
    go_on(tmp_path, **params)
  assert 'max_steps' not in str(info.value)
  assert (tmp_path / 'config.yaml').read_text() == before


def test_seed_may_change(tmp_path):
  """It changes neither variables nor episodes; left out, it is kept."""
  begin(tmp_path)
  assert go_on(tmp_path)[0].seed == 1
  config, lines = go_on(tmp_path, seed=2)
  assert config.seed == 2 and 'seed: 1 -> 2' in lines
  stored = utility.load_config(str(tmp_path))
  assert stored.seed == 2
  assert stored.changes == [{'step': 120, 'seed': [1, 2]}]


def test_every_parameter_says_whether_it_may_change():
  for name in parameters.Parameters.names():
    fixed = parameters.Parameters.fixed(name)
    assert fixed is None or 'variables' in fixed or 'episodes' in fixed, name


@pytest.mark.parametrize(
  'params',
  [
    {'train_collects': []},
    {'train_collects': [{'until': 100}]},
    {'train_collects': [{'save_episode_dir': 'elsewhere'}]},
    {'train_steps': 0},
  ],
)
def test_steps_that_training_may_never_reach(params, tmp_path):
  begin(tmp_path, total_env_steps=5000, **params)
  with pytest.raises(errors.UsageError, match='give max_steps instead'):
    resume.check(go_on(tmp_path)[0], str(tmp_path))


def test_new_limit_replaces_the_other(tmp_path):
  """In the configuration, in config.yaml, and in what is told, both ways."""
  begin(tmp_path, total_env_steps=300)
  go_on(tmp_path)
  for limits, expected in [
    # The limit of the preset is a change, too.
    ({'max_steps': 500}, {'max_steps': [None, 500]}),
    ({'total_env_steps': 300}, {'max_steps': [500, None]}),
    ({'total_env_steps': 400}, {'total_env_steps': [300, 400]}),
    ({'max_steps': 900}, {'max_steps': [None, 900]}),
    ({}, {}),
    ({'max_steps': 900}, {}),
    ({'total_env_steps': 400}, {'max_steps': [900, None]}),
    ({}, {}),
  ]:
    before = utility.load_config(str(tmp_path)).get('changes', [])
    total = utility.load_config(str(tmp_path))['values']['total_env_steps']
    config, lines = go_on(tmp_path, **limits)
    if limits:
      (name,) = limits
      assert config[name] == limits[name]
      given = {'max_steps', 'total_env_steps'} - {name}
      assert all(config[x] is None for x in given)
    else:
      assert config.total_env_steps == total
    stored = utility.load_config(str(tmp_path))
    new = stored.get('changes', [])[len(before) :]
    if expected and 'total_env_steps' not in expected:
      other = config.total_env_steps
      expected['total_env_steps'] = [total, other]
    assert new == ([{'step': 120, **expected}] if expected else [])
    told = [x for x in lines.splitlines() if ' -> ' in x]
    assert sorted(x.partition(' (')[0] for x in told) == sorted(
      f'{x}: {old} -> {new}' for x, (old, new) in expected.items()
    )
    assert not (len(set(stored.params) & {'max_steps', 'total_env_steps'}) > 1)


@pytest.mark.slow
@pytest.mark.parametrize(
  'first, second',
  [
    ({'total_env_steps': 60}, {'max_steps': 12}),
    ({'max_steps': 12}, {'total_env_steps': 4000}),
  ],
)
def test_run_goes_on_to_the_other_limit(
  first, second, tmp_path, monkeypatch, capsys
):
  monkeypatch.undo()
  small = {
    'tasks': ['dummy'],
    'image_size': 32,
    'batch_shape': [2, 3],
    'train_steps': 10,
    'test_steps': 2,
    'model_size': 8,
    'test_collects': [],
    'isolate_envs': 'none',
  }
  for limit in (first, second):
    params = json.dumps({**small, **limit})
    flags = ['--logdir', str(tmp_path), '--config', 'debug']
    assert train.run([*flags, '--params', params]) == 0
  logdir = str(tmp_path / '00001')
  assert not resume.is_unfinished(logdir, second)
  if 'max_steps' in second:
    assert checkpoint.newest_step(logdir) == 12
  (name,) = second
  assert f'{name}: None -> {second[name]}' in capsys.readouterr().out


def test_other_bounds_of_actions(tmp_path, monkeypatch):
  """Recorded actions would mean something else."""
  monkeypatch.undo()
  logdir = str(tmp_path)
  params = {'tasks': ['dummy'], 'isolate_envs': 'none'}
  args = train.Arguments(config='debug', params=params)
  config = resume.check(resume.define_config(logdir, args), logdir)
  for factor, words in ((1, None), (3, 'trained with actions Box.* of dummy')):
    space = config.source.interfaces['dummy']['action_space']
    space['high'] = factor * space['high']
    utility.save_config(config, logdir)
    stored = resume.define_config(logdir, args)
    if not words:
      assert resume.check(stored, logdir).source.interfaces
      continue
    with pytest.raises(errors.UsageError, match=words):
      resume.check(stored, logdir)


def test_bias_of_an_evaluation(tmp_path, monkeypatch):
  """It needs one value for each dimension of the actions, as in training."""
  shapes = {'action': (5,)}
  monkeypatch.setattr(
    environments, 'prepare', lambda config, *_, **__: (config, shapes)
  )
  begin(tmp_path)
  with pytest.raises(errors.UsageError, match='give one value for each'):
    resume.restore(str(tmp_path), params={'planner_bias': [0.6]})


def test_evaluation_ends_with_the_episode(tmp_path):
  """Unlike training, which needs a hundred steps."""
  begin(
    tmp_path,
    tasks=['gym_CartPole-v1'],
    observations='vector',
    batch_shape=[5, 100],
    action_repeat=1,
  )
  _, config, _ = resume.restore(str(tmp_path))
  (simulation,) = config.test_collects.values()
  env, steps, done = simulation.task.env_ctor(), 0, False
  env.reset()
  while not done:
    steps += 1
    _, _, done, _ = env.step(np.array([1, 0], np.float32))
  assert steps < 20
  restored = resume.restore(str(tmp_path), params={'episode_length': 7})
  assert [x.max_length for x in restored.config.tasks] == [7]
  with pytest.raises(errors.UsageError, match='have no action'):
    length = {'episode_length': 1}
    begin(tmp_path / 'fast', action_repeat=2, batch_shape=[5, 2])
    resume.restore(str(tmp_path / 'fast'), params=length)


def test_batches_larger_than_a_test_phase_are_told(tmp_path, monkeypatch):
  shapes = {'action': (5,), 'reward': (), 'image': (64, 64, 3)}
  monkeypatch.setattr(
    environments, 'prepare', lambda config, *_: (config, shapes)
  )
  said = []
  monkeypatch.setattr(
    resume._logger, 'warning', lambda *args: said.append(args)
  )
  for test_steps, count in [(5, 0), (0, 0), (4, 1)]:
    begin(tmp_path, test_steps=test_steps, planner_topk=2)
    resume.check(go_on(tmp_path)[0], str(tmp_path))
    assert len(said) == count
