"""Batches of environments spread over processes."""

import functools
import os
import signal
import threading

import numpy as np
import pytest

from agents.envs import hosts
from agents.envs.batch_env import BatchEnv, VectorEnv
from tests import processes, scripted_envs

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


def test_spaces_are_checked():
  with pytest.raises(ValueError, match='same action space'):
    VectorEnv(
      [
        scripted_envs.VectorEnv,
        functools.partial(scripted_envs.VectorEnv, low=(-5,), high=(5,)),
      ],
      1,
    )


def test_failing_constructor_leaves_no_process():
  with pytest.raises(hosts.WorkerError, match='broken constructor'):
    VectorEnv([scripted_envs.fail_to_construct, scripted_envs.VectorEnv], 1)


def test_killed_process_is_noticed():
  env = VectorEnv([scripted_envs.EchoEnv] * 2, 2)
  env.reset()
  pids = [x.pid for x in env]
  os.kill(pids[1], signal.SIGKILL)
  with processes.time_limit(5):
    with pytest.raises(RuntimeError, match=f'{pids[1]} .*exit code -9'):
      env.step(np.zeros((2, 2), np.float32))
  env.close()
  assert not processes.wait_for_end(pids)
