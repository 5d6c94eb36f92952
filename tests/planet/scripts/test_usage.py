"""Bad input: one sentence, exit code 2, nothing lost on disk."""

import os
import re
from unittest import mock

import numpy as np
import pytest

from agents.run import errors
from agents.run import folder as run_folder
from agents.tools import devices
from planet import trained
from planet.scripts import evaluate, parameters, resume, train
from planet.training import episode_folder
from tests.agents.envs import odd_gymnasium
from tests.planet.scripts import training_runs


def fail(capsys, logdir, *args):
  """Sentence that a command line leads to, with tiny networks."""
  assert train.run(['--logdir', str(logdir), '--config', 'debug', *args]) == 2
  error = capsys.readouterr().err.strip()
  assert error.startswith('Error: ') and '\n' not in error
  return error


PARAMS = [
  ('{tasks: [cheeta_run]}', 'Did you mean cheetah_run'),
  ('{taskss: [dummy]}', 'Did you mean tasks'),
  ('{tasks: dummy}', 'tasks'),
  ('{tasks: [dummy, dummy]}', 'give each task once'),
  ('{batch_shape: [5]}', 'batch_shape'),
  ('{batch_shape: [5, 0]}', 'batch_shape'),
  ('{model_size: 3e9}', '2147483647'),
  ('{planner_horizon: 3e9}', '2147483647'),
  ('{train_steps: 1e19}', '9223372036854775807'),
  ('{image_bits: 9}', 'image_bits'),
  ('{image_size: 65}', 'image_size'),
  ('{future_rnn: 1}', 'future_rnn'),
  ('{min_stddev: -1}', 'min_stddev'),
  ('{model: lstm}', 'ssm'),
  ('{network: conv_65}', 'give one of conv_ha, conv_small'),
  ('{network: conv_32}', 'needs images of 32 pixels'),
  ('{drnn_action_to_decoder: 5}', 'drnn_action_to_decoder'),
  ('{gradient_heads: [velocity]}', 'Known names: image, reward'),
  ('{planner_topk: 2000}', 'more than planner_amount'),
  ('{collect_objective: rewards}', 'give one of reward, or module:name'),
  ('{train_collects: [{evry: 5}]}', 'Did you mean every'),
  ('{train_collects: [{every: 0}]}', 'every'),
  ('{train_collects: [{}, {}]}', 'choose unique names'),
  ('{train_collects: [{name: eval run}]}', "'eval run'"),
  ('{test_collects: [{prefix: ü}]}', "'ü'"),
  ('{overshooting_scale: 1.0}', 'raise it to at least 2'),
  ('{tasks: [dummy], batch_shape: [5, 2000]}', 'too few'),
  ('{tasks: [dummy], observations: vector}', 'observations: vector needs'),
  ('{tasks: [dummy], planner_bias: [0, 0, 0, 0]}', 'give one value for each'),
  ('{tasks: [dummy], precision: bfloat8}', 'precision'),
  ('{a: [', 'is not valid YAML'),
  ('[1, 2]', 'give a mapping'),
  ('{cem_iterations: 3}', 'PlaNet calls it planner_iterations'),
]


@pytest.mark.parametrize('params, message', PARAMS)
def test_parameters(capsys, tmp_path, params, message):
  """Refused without a trace on disk."""
  logdir = tmp_path / 'new' / 'logdir'
  args = ['--params', params, '--config', 'default']
  assert message in fail(capsys, logdir, *args)
  assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
  'args, message',
  [
    (['--confg', 'cpu'], "'--confg' is unknown. Did you mean --config"),
    (['--confg=cpu'], 'Did you mean --config'),
    (['cpu'], "'cpu' is unknown"),
    (['--num_runs', '-1'], '--num_runs: it is -1'),
    (['--ping_every', '-1'], '--ping_every: it is -1'),
    (['--seed', '-1'], '--seed: it is -1'),
    (['--seed', '1.5'], '--seed: it is 1.5: give a whole number'),
    (['--total_env_steps', '0'], 'total_env_steps'),
    (['--logdir='], '--logdir: it is empty; give the path of a folder'),
  ],
)
def test_flags(capsys, tmp_path, args, message):
  assert message in fail(capsys, tmp_path / 'logdir', *args)
  assert not os.listdir(tmp_path)


def test_known_parameters_without_effect(tmp_path, monkeypatch):
  """One text of parameters can serve several tasks, models and loaders."""
  logger = mock.Mock()
  monkeypatch.setattr(resume, '_logger', logger)
  params = train.parse_params(
    '{tasks: [dummy], isolate_envs: none, camera_id: 1, future_rnn: false, '
    'drnn_action_to_decoder: true, touch_loss_scale: 2, loader: reload, '
    'loader_every: 7, loader_max_bytes: 9, overshooting_distance: 3, '
    'bound_action: tanh}'
  )
  args = train.Arguments(config='debug', params=params)
  resume.check(resume.define_config(str(tmp_path), args), str(tmp_path))
  warned = [x.args[1] for x in logger.warning.call_args_list]
  assert warned == [
    'bound_action',
    'camera_id',
    'drnn_action_to_decoder',
    'loader_every',
    'loader_max_bytes',
    'overshooting_distance',
    'touch_loss_scale',
  ]


@pytest.mark.parametrize(
  'given, unused',
  [
    ('{image_bits: 8}', []),
    ('{observations: vector, image_bits: 8}', ['image_bits']),
    (
      '{observations: vector, image_size: 32, camera_id: 1}',
      ['camera_id', 'image_size'],
    ),
    ('{tasks: [dummy], state_diagnostics: true}', ['state_diagnostics']),
    ('{state_diagnostics: false, action_noise_min: 0.1}', ['action_noise_min']),
    ('{action_noise_ramp: 9, action_noise_min: 0.1}', []),
    ('{action_noise_ramp: 9, train_action_noise: 0}', ['action_noise_ramp']),
    ('{checkpoint_every: 9, test_steps: 0}', ['checkpoint_every']),
    ('{train_episodes: x, collect_every: 9}', ['collect_every']),
  ],
)
def test_parameters_that_others_leave_without_effect(given, unused):
  built = parameters.build('debug', train.parse_params(given))
  assert parameters.find_unused(built, ['reward']) == unused


def test_precision_without_hardware(capsys, tmp_path, monkeypatch):
  monkeypatch.setattr(devices, 'compute_capability', lambda: None)
  params = '{tasks: [dummy], precision: float16}'
  error = fail(capsys, tmp_path / 'new', '--params', params)
  assert 'float16, which needs a GPU' in error
  assert not os.listdir(tmp_path)


def test_unknown_config(capsys, tmp_path):
  error = fail(capsys, tmp_path, '--config', 'debgu')
  assert 'Did you mean debug' in error


def test_unwritable_logdir(capsys, tmp_path):
  (tmp_path / 'file').write_text('')
  error = fail(capsys, tmp_path / 'file' / 'logdir')
  assert 'Cannot write to the folder' in error


@pytest.mark.parametrize(
  'params, message',
  [
    ('tasks: [gym_Pendulumm-v1]', 'Did you mean'),
  ],
)
def test_environments_that_do_not_fit(capsys, tmp_path, params, message):
  """Found out in a process of its own, before any episode is collected."""
  assert message in fail(capsys, tmp_path, '--params', f'{{{params}}}')
  assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
  'name, code, message',
  [
    ('Broken', 1, 'constructor with KeyError'),
    ('NoImage', 1, 'returns None; with render_mode'),
    ('NaN', 1, 'NaN observation encountered in'),
    ('Growing', 1, 'returned an observation of shape (4,) in step 4'),
    ('Exit', 1, 'failed in step 5 with SystemExit(0)'),
    ('InfoNone', 1, 'returned info None in step 5'),
    ('Blind', 2, 'takes no render_mode'),
    ('Brokn', 2, 'Did you mean OddBroken-v0'),
  ],
)
def test_environments_that_make_mistakes(capsys, tmp_path, name, code, message):
  """One sentence; the traceback of the environment below it, if it raised."""
  task = f'gym_{odd_gymnasium.MODULE}:Odd{name}-v0'
  # The probe makes one step only.
  params = f'{{tasks: ["{task}"], isolate_envs: none, action_repeat: 1}}'
  args = ['--config', 'debug', '--params', params]
  assert train.run(['--logdir', str(tmp_path / 'run'), *args]) == code
  error = capsys.readouterr().err
  assert error.count('Error: ') == 1 + (name == 'Broken')
  assert message in re.search('^Error: (.*)$', error, re.MULTILINE).group(1)
  assert error.count('Traceback') == (name in ('Broken', 'Exit'))
  # Also from the first episode: nothing is in the way of the mended one.
  assert not os.listdir(tmp_path)


def test_no_episodes_to_begin_with(capsys, tmp_path):
  """Found out before the run has a folder; with episodes it may begin."""
  params = '{tasks: [dummy], num_seed_episodes: 0}'
  error = fail(capsys, tmp_path / 'run', '--params', params)
  assert 'num_seed_episodes is 0' in error
  assert not os.listdir(tmp_path)
  steps = 60
  for name in ('train_episodes', 'test_episodes'):
    folder = tmp_path / 'run' / '00001' / name
    folder.mkdir(parents=True)
    np.savez(
      folder / f'some-{steps}.npz',
      image=np.zeros((steps, 64, 64, 3), np.uint8),
      action=np.zeros((steps, 5), np.float32),
      reward=np.zeros(steps, np.float32),
    )
  args = train.Arguments(config='debug', params=train.parse_params(params))
  logdir = str(tmp_path / 'run' / '00001')
  resume.check(resume.define_config(logdir, args), logdir)


def test_nothing_but_damaged_checkpoints(capsys, tmp_path):
  """Named; neither trained anew in their place, nor taken for finished."""
  params = '{tasks: [dummy], max_steps: 50}'
  folder = tmp_path / '00001'
  folder.mkdir()
  (folder / 'config.yaml').write_text(
    f'version: 1\nconfig: debug\nparams: {params}\nseed: 1\n'
  )
  (folder / 'model.ckpt-20.index').write_bytes(b'damaged')
  for _ in range(2):
    error = fail(capsys, tmp_path, '--params', params)
    assert f'{folder}/model.ckpt-20 (its index cannot be read' in error
    (folder / 'DONE').touch()
  with pytest.raises(errors.UsageError, match='All checkpoints are damaged'):
    trained.restore(str(tmp_path))


def test_changed_settings_on_resume(capsys, tmp_path):
  """The run stays as it is; limits of the length may change."""
  params = '{tasks: [dummy], isolate_envs: none}'
  folder = tmp_path / '00001'
  folder.mkdir()
  (folder / 'config.yaml').write_text(
    f'version: 1\nconfig: debug\nparams: {params}\nseed: 1\n'
  )
  for args, change in (
    (['--config', 'cpu', '--params', params], 'cannot continue with'),
    (['--params', '{image_size: 32}'], 'image_size: 64 -> 32'),
    (['--params', '{taks: [dummy]}'], 'Did you mean tasks'),
  ):
    assert change in fail(capsys, tmp_path, *args)
  assert os.listdir(folder) == ['config.yaml']
  for text, message in (
    ('version: 1\nupdate_every: 2\n', 'is not a PlaNet run; use the program'),
    ('config: [', 'Cannot read'),
    ('- 1', 'it is not a mapping'),
  ):
    (folder / 'config.yaml').write_text(text)
    for logdir in (tmp_path, folder):
      assert message in fail(capsys, logdir)
    assert os.listdir(folder) == ['config.yaml']
  (folder / 'config.yaml').write_text('config: cpu\nparams: {}\n')
  assert 'has format None, but' in fail(capsys, tmp_path)


def test_episodes_of_another_task(tmp_path):
  """Nothing is set aside when no file fits; other files would be lost."""
  import numpy as np

  folder = tmp_path / '00001' / 'train_episodes'
  folder.mkdir(parents=True)
  np.savez(folder / 'a.npz', image=np.zeros((3, 9, 9, 3)), reward=np.zeros(3))
  args = train.Arguments(config='debug', params={'tasks': ['dummy']})
  with pytest.raises(errors.UsageError) as info:
    next(train.process(str(tmp_path / '00001'), args))
  error = str(info.value)
  assert 'image [9, 9, 3]' in error and 'image [64, 64, 3]' in error
  assert os.listdir(folder) == ['a.npz']
  assert os.listdir(tmp_path / '00001') == ['train_episodes']


def test_episodes_that_are_too_short(tmp_path):
  """Found out before training, for instance after a change of batch_shape."""
  import numpy as np

  folder = tmp_path / 'train_episodes'
  folder.mkdir()
  np.savez(folder / 'a.npz', reward=np.zeros(10))
  episode_folder.check(str(folder), {'reward': ()}, 10)
  with pytest.raises(errors.UsageError, match='10 obs.* need 11; lower them'):
    episode_folder.check(str(folder), {'reward': ()}, 11)
  assert os.listdir(folder) == ['a.npz']


def test_missing_extra(capsys, tmp_path, monkeypatch):
  """Without dm_control the sentence names the extra to install."""
  (tmp_path / 'dm_control').mkdir()
  (tmp_path / 'dm_control' / '__init__.py').write_text(
    'raise ImportError("no dm_control")\n'
  )
  monkeypatch.syspath_prepend(str(tmp_path))
  error = fail(capsys, tmp_path, '--params', '{tasks: [cartpole_balance]}')
  assert "pip install 'reference-agents[dmc]'" in error


def test_no_opengl(capsys, tmp_path, monkeypatch):
  monkeypatch.setenv('MUJOCO_GL', 'nothing')
  monkeypatch.delenv('AGENTS_OPENGL_RENDERER', raising=False)
  error = fail(capsys, tmp_path, '--params', '{tasks: [cartpole_balance]}')
  assert 'OpenGL cannot render with MUJOCO_GL=nothing' in error


@pytest.mark.render
def test_rendering_beside_tensorflow(capsys, tmp_path, monkeypatch):
  """Software OpenGL is refused in the process of TensorFlow."""
  from agents.envs import opengl

  renderer = opengl.select_backend()
  if not opengl.is_software(renderer):
    pytest.skip(f'{renderer} is no software renderer')
  params = '{tasks: [cartpole_balance], isolate_envs: thread}'
  error = fail(capsys, tmp_path, '--params', params)
  assert 'use isolate_envs: process' in error


def test_unknown_flags_are_passed_over(capsys):
  """Like the original, for launchers that add flags of their own."""
  args = ['--logdir', 'x', '--launcher_id', '7', '--ignore_unknown']
  args = train.parse_args(args)
  assert args.config == 'default' and args.num_runs == 1
  assert '--launcher_id 7' in capsys.readouterr().err


def test_commas_as_hashes():
  params = train.parse_params('{a: 1# b: [2# 5e7]# c: 1e-3}')
  assert params == {'a': 1, 'b': [2, 5e7], 'c': 1e-3}


@pytest.mark.parametrize('value', ['true', '1', ''])
def test_literal_booleans(value):
  with pytest.raises(errors.UsageError, match='resume_runs: invalid choice'):
    train.parse_args(['--logdir', 'x', '--resume_runs', value])
  args = train.parse_args(['--logdir', 'x', '--resume_runs', 'False'])
  assert args.resume_runs is False


def test_evaluation_without_a_run(capsys, tmp_path):
  assert evaluate.run(['--logdir', str(tmp_path)]) == 2
  assert 'There is no run in' in capsys.readouterr().err
  folder = tmp_path / '00001'
  folder.mkdir()
  (folder / 'config.yaml').write_text(
    'version: 1\nconfig: debug\nparams: {tasks: [dummy]}\n'
  )
  assert evaluate.run(['--logdir', str(tmp_path)]) == 2
  assert 'There is no checkpoint' in capsys.readouterr().err
  assert training_runs.run_dir(tmp_path) == run_folder.find_single(tmp_path)
