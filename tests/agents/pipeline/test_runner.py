"""Cycles and epochs, limits, signals, and resuming."""

import json
import os
import random
import signal
import time

import numpy as np
import pytest

from agents import pipeline
from agents.pipeline import checkpoints, gym_explorer, main, runner, toolbox
from agents.pipeline.loader import Loader
from agents.pipeline.params import ddpg_pendulum
from agents.run import checkpoint, errors, schema
from agents.tools.tf1 import tf
from tests.agents import training_runs
from tests.agents.pipeline import toy
from tests.agents.pipeline.test_session import load, start


def read_checkpoint(path):
  """Variables, states and counters of the newest checkpoint."""
  folder = list(checkpoints.list_checkpoints(str(path)).values())[-1]
  reader = tf.train.NewCheckpointReader(os.path.join(folder, 'model.ckpt'))
  names = reader.get_variable_to_shape_map()
  variables = {name: reader.get_tensor(name) for name in names}
  states = checkpoint.read_tree(os.path.join(folder, 'rank0'))
  memory = os.path.join(folder, 'memory0')
  if os.path.exists(memory + '.json'):
    states['memory'] = checkpoint.read_tree(memory)
  return variables, states, states['runner']


def test_resuming_changes_nothing(tmp_path):
  """Two and two epochs are four, bit for bit, optimizer included."""
  assert start(tmp_path, name='whole', number_epochs=4) == 0
  assert start(tmp_path, name='parts', number_epochs=4, max_iter=2) == 0
  assert load(tmp_path / 'all' / 'parts', '--resume') == 0
  whole = read_checkpoint(tmp_path / 'all' / 'whole')
  parts = read_checkpoint(tmp_path / 'all' / 'parts')
  assert len(whole[0]) >= 3 and whole[0]['mean/mean'] != 0
  for name, value in whole[0].items():
    np.testing.assert_array_equal(value, parts[0][name], name)
  for key in ('agents', 'explorer', 'memory', 'random'):
    np.testing.assert_equal(whole[1][key], parts[1][key])
  for key in ('i_epoch', 'i_frame', 'best_score', 'best_epoch'):
    assert whole[2][key] == parts[2][key]
  name = '/reward/test/episodic'
  logs = [
    Loader(str(tmp_path / 'all' / x)).getVarlogLoader()[name]
    for x in ('whole', 'parts')
  ]
  np.testing.assert_array_equal(logs[0]['sum'], logs[1]['sum'])
  np.testing.assert_array_equal(logs[1]['epoch'], [1, 2, 3, 4])


@pytest.mark.parametrize(
  'policy, kept', [('never', []), ('final', [2]), ('every', [2])]
)
def test_contents_of_memories(tmp_path, policy, kept):
  assert start(tmp_path, memory_save=policy, number_epochs=3, max_iter=2) == 0
  path = tmp_path / 'all' / 'run'
  found = [x.parent.name for x in path.glob('checkpoints/*/memory0.npz')]
  assert found == [f'checkpoint-{x}' for x in kept]
  assert len(checkpoints.list_checkpoints(str(path))) == 3
  assert load(path, '--resume') == 0
  warned = 'memory train were not saved' in (path / 'report.log').read_text()
  assert warned == (not kept)
  if kept:
    assert len(read_checkpoint(path)[1]['memory']['train']['values']) == 9


def test_a_finished_session_that_cannot_go_on(tmp_path, capsys):
  """It stays finished."""
  assert start(tmp_path) == 0
  path = tmp_path / 'all' / 'run'
  for data in path.glob('checkpoints/*/model.ckpt.data-*'):
    data.write_bytes(bytes(data.stat().st_size))
  assert load(path, '--resume', '--repeal', '{"runner.n_epochs": 9}') == 2
  assert 'damaged' in capsys.readouterr().err
  assert (path / 'done.lock').exists()


@pytest.mark.parametrize('words', [(), ('--create-session-only',)])
def test_explorers_are_closed(tmp_path, monkeypatch, words):
  closed = []
  close = lambda self: closed.append(self.mode)
  monkeypatch.setattr(toy.NumberExplorer, 'close', close)
  assert start(tmp_path, *words) == 0
  assert sorted(closed) == ['test', 'train']


def test_old_checkpoints_are_removed(tmp_path):
  """All but the newest five and that of the best epoch."""
  assert start(tmp_path, number_epochs=9, learning_rate=0.0, seed=1) == 0
  path = tmp_path / 'all' / 'run'
  best = read_checkpoint(path)[2]['best_epoch']
  assert best < 5
  assert list(checkpoints.list_checkpoints(str(path))) == [best, 5, 6, 7, 8, 9]


def test_last_checkpoint_is_written_once(tmp_path, monkeypatch):
  epochs = []
  save = runner.Runner.save

  def note(self, final=False):
    epochs.append((self.state['i_epoch'], final))
    save(self, final)

  monkeypatch.setattr(runner.Runner, 'save', note)
  assert start(tmp_path, number_epochs=3) == 0
  assert epochs == [(0, True), (1, False), (2, False), (3, True)]


def test_override(tmp_path, monkeypatch):
  """A hook of subclasses, for what was created or restored."""
  epochs = []
  note = lambda self: epochs.append(self.state['i_epoch'])
  monkeypatch.setattr(pipeline.Runner, 'override', note)
  assert start(tmp_path, number_epochs=4, max_iter=2) == 0
  assert load(tmp_path / 'all' / 'run', '--resume') == 0
  assert epochs == [0, 2]


@pytest.mark.parametrize(
  'panel, words',
  [
    ({'learning_rate': 1e39}, 'Variable mean/mean'),
    ({'scale': 1e308}, 'The score'),
  ],
)
def test_not_finite(tmp_path, capsys, panel, words):
  """One sentence; what is not finite is never saved."""
  assert start(tmp_path, number_epochs=3, **panel) == 1
  (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
  assert f'{words} is not finite in epoch 1; last checkpoint: epoch 0' in line
  path = tmp_path / 'all' / 'run'
  assert list(checkpoints.list_checkpoints(str(path))) == [0]
  assert read_checkpoint(path)[2]['best_score'] is None


def test_limits(tmp_path):
  assert start(tmp_path, name='a', number_epochs=5, max_iter=3) == 0
  assert read_checkpoint(tmp_path / 'all' / 'a')[2]['i_epoch'] == 3
  assert start(tmp_path, name='b', number_epochs=5, max_time=1e-9) == 0
  assert read_checkpoint(tmp_path / 'all' / 'b')[2]['i_epoch'] == 1
  assert not os.path.exists(tmp_path / 'all' / 'a' / 'done.lock')


def test_stop_within_an_epoch(tmp_path):
  """SIGUSR1 in the tenth of a thousand cycles."""
  assert start(tmp_path, number_epochs=1, epoch_size=1000, signal_at=10) == 0
  path = tmp_path / 'all' / 'run'
  _, states, state = read_checkpoint(path)
  assert state['i_epoch'] == 0 and state['i_cycle'] == 10
  assert states['agents']['mean']['updates'] == 10
  repeal = {'runner.n_cycles': 20, 'agents.mean.args.signal_at': None}
  assert load(path, '--resume', '--repeal', json.dumps(repeal)) == 0
  _, states, state = read_checkpoint(path)
  assert state['i_epoch'] == 1 and states['agents']['mean']['updates'] == 20


@pytest.mark.parametrize('policy', ['never', 'final', 'every'])
def test_stop_after_the_first_epoch(tmp_path, policy):
  """What the stopped epoch has done is kept, whatever memories are."""
  cpanel = {'memory_save': policy, 'number_epochs': 2, 'epoch_size': 10}
  assert start(tmp_path, signal_at=13, **cpanel) == 0
  path = tmp_path / 'all' / 'run'
  _, states, state = read_checkpoint(path)
  assert state['i_epoch'] == 1 and state['i_cycle'] == 3
  assert states['agents']['mean']['updates'] == 13
  repeal = json.dumps({'agents.mean.args.signal_at': None})
  assert load(path, '--resume', '--repeal', repeal) == 0
  assert read_checkpoint(path)[1]['agents']['mean']['updates'] == 20


@pytest.mark.parametrize(
  'mode, step, epoch, cycle', [('train', 5, 1, 2), ('test', 1, 1, 3)]
)
def test_failing_explorer(tmp_path, capsys, mode, step, epoch, cycle):
  """The cycles before are kept with the memories; a test is repeated."""
  assert start(tmp_path, fail_at=[mode, step], number_epochs=3) == 1
  assert 'Error: The explorer has failed.' in capsys.readouterr().err
  path = tmp_path / 'all' / 'run'
  _, states, state = read_checkpoint(path)
  assert [state['i_epoch'], state['i_cycle']] == [epoch, cycle]
  updates = 3 * epoch + cycle
  assert states['agents']['mean']['updates'] == updates
  assert len(states['memory']['train']['values']) == updates
  repeal = {f'explorer.{x}.args.fail_at': None for x in ('train', 'test')}
  assert load(path, '--resume', '--repeal', json.dumps(repeal)) == 0
  assert read_checkpoint(path)[1]['agents']['mean']['updates'] == 9
  varlog = Loader(str(path)).getVarlogLoader()['/reward/test/episodic']
  np.testing.assert_array_equal(varlog['epoch'], [1, 2, 3])


def test_best_score_is_that_of_a_test(tmp_path):
  """Epochs without a test keep the epoch of the best one."""
  assert start(tmp_path, number_epochs=5, test_interval=4) == 0
  state = read_checkpoint(tmp_path / 'all' / 'run')[2]
  assert state['best_epoch'] == 4
  log = (tmp_path / 'all' / 'run' / 'report.log').read_text()
  assert log.count('test return -') == 1


def test_memory_of_another_name(tmp_path, monkeypatch, capsys):
  made = toy.gen_params

  def renamed(cpanel):
    tree = made(cpanel)
    return {**tree, 'memory': {'other': tree['memory']['train']}}

  monkeypatch.setattr(toy, 'gen_params', renamed)
  assert start(tmp_path) == 2
  assert "Memory 'train' is unknown" in capsys.readouterr().err
  assert not os.listdir(tmp_path)


def test_nodes_that_nobody_reads(tmp_path, monkeypatch, capsys):
  """Refused with the nearest name; classes of users may read their own."""
  for module in (ddpg_pendulum, toy):
    made = module.gen_params
    monkeypatch.setattr(
      module, 'gen_params', lambda x, made=made: {**made(x), 'rnner': {}}
    )
  assert start(tmp_path, '--params', ddpg_pendulum.__name__) == 2
  assert "'rnner' is unknown. Did you mean runner" in capsys.readouterr().err
  assert not os.listdir(tmp_path)
  assert start(tmp_path) == 0


def make_runner(score, kind):
  """Runner with an explorer that has not been started."""
  made = runner.Runner({'runner': {'score': score}})
  made.agents, made.explorer = {}, {'train': object.__new__(kind)}
  return made


def test_scores_that_nothing_records(tmp_path, monkeypatch):
  """Are refused, unless a part of the user might record them."""
  for score in ('/reward/test/episodic', '/update/loss'):
    make_runner(score, gym_explorer.GymExplorer)._check_score()
  make_runner('/mine', toy.NumberExplorer)._check_score()
  with pytest.raises(errors.UsageError, match='Did you mean /reward/test'):
    make_runner('/reward/test', gym_explorer.GymExplorer)._check_score()
  assert start(tmp_path, score='/mine') == 0
  log = (tmp_path / 'all' / 'run' / 'report.log').read_text()
  assert '/mine, the score of the runner, has not been recorded' in log
  monkeypatch.setattr(toolbox, 'is_own', lambda part: True)
  assert start(tmp_path / 'own', score='/mine') == 2


def test_without_tests(tmp_path):
  """There are no environments for them; later they can be switched on."""
  assert start(tmp_path, number_epochs=2, max_iter=1, test_act=False) == 0
  path = tmp_path / 'all' / 'run'
  assert set(read_checkpoint(path)[1]['explorer']) == {'train'}
  repeal = json.dumps({'runner.test_act': True})
  assert load(path, '--resume', '--repeal', repeal) == 0
  assert set(read_checkpoint(path)[1]['explorer']) == {'train', 'test'}


def test_playing_reads_no_memory(tmp_path):
  assert start(tmp_path) == 0
  path = tmp_path / 'all' / 'run'
  (memory,) = path.glob('checkpoints/*/memory0.npz')
  content = bytearray(memory.read_bytes())
  content[len(content) // 2] ^= 1
  memory.write_bytes(content)
  assert load(path, '--play') == 0


def launch(path, **repeal):
  """Continue a session in a process of its own."""
  return training_runs.start(
    *('-m', 'scripts.main', '--load-checkpoint', str(path), '--resume'),
    *('--trust', 'tests', '--repeal', json.dumps(repeal)),
  )


def wait_for_epoch(path, epoch, process):
  """Wait for its checkpoint or a later one, as old ones are removed."""
  deadline = time.time() + 120
  while time.time() < deadline and process.poll() is None:
    places = path.glob('checkpoints/checkpoint-*/COMPLETE')
    found = [x.parent.name.rpartition('-')[2] for x in places]
    if any(x.isdigit() and int(x) >= epoch for x in found):
      return
    time.sleep(0.02)
  process.kill()
  raise AssertionError(process.communicate()[0])


def test_interrupted_twice(tmp_path):
  """The first Ctrl-C asks to stop after the cycle, the second ends it."""
  assert start(tmp_path, '--create-session-only', epoch_size=2) == 0
  path = tmp_path / 'all' / 'run'
  repeal = {'runner.n_epochs': 100, 'explorer.train.args.pause': 600.0}
  process = launch(path, **repeal)
  for line in process.stdout:
    if line.startswith('Epoch 1'):
      break
  process.send_signal(signal.SIGINT)
  for line in process.stdout:
    if 'press Ctrl-C again' in line:
      break
  # Two at the same time count as one.
  time.sleep(0.5)
  process.send_signal(signal.SIGINT)
  assert process.wait(60) == 130
  assert list(checkpoints.list_checkpoints(str(path))) == [0]
  repeal = {'runner.n_epochs': 1, 'explorer.train.args.pause': 0.0}
  assert load(path, '--resume', '--repeal', json.dumps(repeal)) == 0


@pytest.mark.slow
def test_killed(tmp_path):
  """At any moment, the newest complete checkpoint can be continued."""
  draw = random.Random(10)
  cpanel = {'memory_save': 'every', 'epoch_size': 1}
  assert start(tmp_path, '--create-session-only', **cpanel) == 0
  path = tmp_path / 'all' / 'run'
  last = 0
  for _ in range(10):
    process = launch(path, **{'runner.n_epochs': 1000000})
    wait_for_epoch(path, last + 1, process)
    time.sleep(draw.uniform(0, 0.5))
    process.kill()
    process.wait()
    process.stdout.close()
    found = list(checkpoints.list_checkpoints(str(path)))
    assert found[-1] > last
    last = found[-1]
  args = ('--resume', '--repeal', json.dumps({'runner.n_epochs': last + 1}))
  assert load(path, *args) == 0
  states = read_checkpoint(path)[1]
  assert states['agents']['mean']['updates'] == last + 1
  assert len(states['memory']['train']['values']) == last + 1


def test_usage_of_the_program(capsys):
  assert main.entrypoint([]) == 2
  assert capsys.readouterr().err.startswith('Error: There is nothing to run')
  with pytest.raises(SystemExit) as exit_:
    main.entrypoint(['--help'])
  assert exit_.value.code == 0
  capsys.readouterr()
  module = 'agents.pipeline.params.ddpg_pendulum'
  for words in (['--params', module], [f'--params={module}']):
    with pytest.raises(SystemExit):
      main.entrypoint([*words, '--help'])
    assert f'cpanel of {module}' in capsys.readouterr().out


@pytest.mark.parametrize(
  'repeal, words',
  [
    ('{"runner.n_epochs": 0}', 'n_epochs'),
    ('{"runner.max_time": "long"}', "'max_time' of the runner is 'long'"),
    ('{"runner.memory_save": "often"}', 'final'),
  ],
)
def test_wrong_settings(tmp_path, capsys, repeal, words):
  """Are refused before anything is left on disk."""
  assert start(tmp_path, '--repeal', repeal) == 2
  assert words in capsys.readouterr().err
  assert not os.listdir(tmp_path)


def test_settings_of_another_runner():
  """Names are checked; a derived class may declare more."""
  with pytest.raises(errors.UsageError, match='Did you mean n_epochs'):
    runner.Runner({'runner': {'n_epoch': 3}})

  class Own(runner.Runner):
    class declared(runner.RunnerSettings):
      size: schema.Count = schema.setting(3)

  assert Own({'runner': {'n_epochs': 3}})
