"""Batches of environments, here and spread over processes."""

import functools
import os
import signal
import threading

import numpy as np
import pytest

from agents.envs import hosts
from agents.envs.batch_env import BatchEnv, VectorEnv
from agents.envs.external import Async
from tests import golden, processes, scripted_envs

LENGTHS = (2, 3, 4, 3, 2)


@pytest.fixture(autouse=True)
def limit():
  with processes.time_limit(60):
    yield


@pytest.fixture(scope='module')
def external():
  """Five environments in two processes."""
  env = VectorEnv(
    [functools.partial(scripted_envs.EchoEnv, x) for x in LENGTHS], 2
  )
  yield env
  env.close()


def test_environments_share_processes(external):
  pids = [env.pid for env in external]
  assert len(pids) == len(external) == 5
  assert len(set(pids)) == 2 and os.getpid() not in pids
  assert pids == sorted(pids, key=pids.index)
  assert external.length == 2 and external[2].length == 4


@pytest.fixture(scope='module')
def threads():
  """Five environments in as many threads."""
  env = VectorEnv(
    [functools.partial(scripted_envs.EchoEnv, x) for x in LENGTHS], 5, 'thread'
  )
  yield env
  env.close()


def test_threads_share_the_process(threads):
  assert {env.pid for env in threads} == {os.getpid()}
  assert len({env.thread for env in threads} - {threading.get_ident()}) == 5


@pytest.mark.parametrize('where', ['external', 'threads'])
def test_equals_batch_env(where, request):
  """The same observations, rewards, flags and infos, with partial resets."""
  external = request.getfixturevalue(where)
  local = BatchEnv([scripted_envs.EchoEnv(x) for x in LENGTHS], blocking=True)
  random = np.random.RandomState(0)
  np.testing.assert_equal(local.reset(), external.reset())
  for _ in range(6):
    actions = random.uniform(-1, 1, (5, 2)).astype(np.float32)
    one, two = local.step(actions), external.step(actions)
    np.testing.assert_equal(one, two)
    assert [type(x) for x in one] == [type(x) for x in two]
    assert [x.dtype for x in one[:3]] == [x.dtype for x in two[:3]]
    done = np.nonzero(one[2])[0]
    if len(done):
      np.testing.assert_equal(local.reset(done), external.reset(done))
  np.testing.assert_equal(local.reset([4, 0]), external.reset([4, 0]))


def test_invalid_action(external):
  """Refused here, so that the processes survive."""
  actions = np.zeros((5, 2), np.float32)
  actions[3] = 2
  with pytest.raises(ValueError, match='index 3'):
    external.step(actions)
  assert external.magic == 'hello'


def test_failing_constructor_leaves_no_process():
  with pytest.raises(hosts.WorkerError, match='broken constructor'):
    VectorEnv([scripted_envs.fail_to_construct, scripted_envs.VectorEnv], 1)


def test_killed_process_is_noticed():
  env = VectorEnv([scripted_envs.EchoEnv] * 2, 2)
  env.reset()
  pids = [x.pid for x in env]
  os.kill(pids[1], signal.SIGKILL)
  with processes.time_limit(30):
    with pytest.raises(RuntimeError, match=f'{pids[1]} .*exit code -9'):
      env.step(np.zeros((2, 2), np.float32))
  env.close()
  assert not processes.wait_for_end(pids)


def recorded_envs():
  """Two environments like those of the recording, 3 and 5 steps long."""
  data = golden.load('planet/wrappers')
  kwargs = dict(
    rewards=data['in/rewards'],
    low=data['in/action_low'],
    high=data['in/action_high'],
  )
  return [scripted_envs.VectorEnv(x, **kwargs) for x in (3, 5)]


def test_recorded_steps():
  """`planet/wrappers`, out/batch_env: four steps, a reset in between, 1e-5.

  Only the first environment is reset after the third step.
  """
  data = golden.load('planet/wrappers').below('out/batch_env')
  env = BatchEnv(recorded_envs(), blocking=True)
  actions = np.tile(np.float32([-2, 0, -1]), (2, 1))
  rows = {'obs': [env.reset()], 'reward': [], 'done': []}
  for step in range(4):
    observ, reward, done, info = env.step(actions)
    for key, value in zip(rows, (observ, reward, done)):
      rows[key].append(value)
    assert isinstance(info, tuple) and len(info) == len(env) == 2
    if step == 2:
      partial_reset = env.reset(np.array([0]))
  rows = {key: np.stack(value) for key, value in rows.items()}
  rows['partial_reset'] = partial_reset
  golden.assert_all_close(rows, data)
  recorded = golden.load_json('planet/wrappers')['batch_env_dtypes']
  assert {k: v.dtype for k, v in rows.items() if k in recorded} == {
    k: recorded[k] for k in ('obs', 'reward', 'done')
  }


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize('bad', [99, np.nan])
def test_invalid_actions_are_named(bad, dtype):
  env = BatchEnv([scripted_envs.EchoEnv() for _ in range(3)], blocking=True)
  env.reset()
  actions = np.zeros((3, 2), dtype)
  env.step(actions)
  env.step(list(actions))
  actions[1, 1] = bad
  with pytest.raises(ValueError, match='Invalid action at index 1: .* not in'):
    env.step(actions)


@pytest.mark.parametrize(
  'other, name',
  [
    (scripted_envs.VectorEnv(), 'action'),
    (scripted_envs.ScriptedEnv(low=(-1, -1), high=(1, 1)), 'observation'),
  ],
)
def test_different_spaces_are_refused(other, name):
  """The message names what differs (the original always said action)."""
  first = scripted_envs.VectorEnv(low=(-1, -1), high=(1, 1))
  message = f'All environments must use the same {name} space.'
  with pytest.raises(ValueError) as error:
    BatchEnv([first, other], blocking=True)
  assert str(error.value) == message


def test_access():
  """Items are environments, unknown attributes those of the first one."""
  envs = recorded_envs()
  env = BatchEnv(envs, blocking=True)
  assert env[1] is envs[1]
  assert env.magic == 'hello' and env.length == 3
  with pytest.raises(AttributeError):
    _ = env.missing
  env.close()


def test_promises():
  """Without blocking, every step begins before the first result is due."""
  log = []

  class Promising(scripted_envs.EchoEnv):
    def step(self, action, blocking=True):
      assert not blocking
      log.append('start')
      return lambda: log.append('end') or super(Promising, self).step(action)

    def reset(self, blocking=True):
      return super().reset

  env = BatchEnv([Promising() for _ in range(2)], blocking=False)
  env.reset()
  env.step(np.zeros((2, 2), np.float32))
  assert log == ['start', 'start', 'end', 'end']


def test_threads_equal_blocking():
  """Environments in threads give the same transitions."""
  batches = [
    BatchEnv([scripted_envs.EchoEnv(x) for x in (2, 3)], blocking=True),
    BatchEnv(
      [Async(lambda x=x: scripted_envs.EchoEnv(x), 'thread') for x in (2, 3)],
      blocking=False,
    ),
  ]
  for reset in (None, [1], [0, 1]):
    one, two = [env.reset(reset) for env in batches]
    np.testing.assert_equal(one, two)
    actions = np.float32([[0.1, 0.2], [0.3, -1]])
    one, two = [env.step(actions) for env in batches]
    np.testing.assert_equal(one, two)
  for env in batches:
    env.close()
