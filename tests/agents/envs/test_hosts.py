"""Environments in threads and processes, and how they end."""

import errno
import functools
import multiprocessing
import os
import pickle
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from agents.envs import external, hosts, vector
from agents.run import errors, stopping
from tests import golden, processes, scripted_envs

ACTION = np.zeros(1, np.float32)
both = pytest.mark.parametrize('strategy', ['thread', 'process'])


@pytest.fixture
def start():
  """Function that starts an environment, which is closed in the end."""
  envs = []

  def start_env(constructor, strategy='process'):
    envs.append(external.Async(constructor, strategy))
    return envs[-1]

  with processes.time_limit(60):
    yield start_env
    for env in envs:
      env.close()


@both
def test_recorded_transitions(start, strategy):
  """`planet/wrappers.json`, async_*: promises, attributes, spaces; exact."""
  expected = golden.load_json('planet/wrappers')['async_' + strategy]
  env = start(scripted_envs.VectorEnv, strategy)
  assert env.reset(blocking=False)().tolist() == expected['reset']
  promise = env.step(ACTION, blocking=False)
  transition = promise()
  assert len(transition) == expected['step_len']
  assert transition[0].tolist() == expected['step_obs']
  assert env.step(ACTION)[0].tolist() == [2, 2]
  assert env.magic == expected['magic']
  assert str(env.observation_space.shape) == expected['space']
  assert env.observation_space is env.observation_space
  assert env.call('render')().shape == env.render().shape == (6, 8, 3)


def test_a_call_that_cannot_be_sent(start):
  """It fails alone; later calls get their own results."""
  env = start(scripted_envs.VectorEnv)
  with pytest.raises((AttributeError, pickle.PicklingError)):
    env.call('render', lambda: 0)
  assert env.reset().tolist() == [0, 2]
  assert env.step(ACTION)[0].tolist() == [1, 2]


@both
def test_promises_keep_their_order(start, strategy):
  """Results belong to their calls, also when collected backwards."""
  env = start(scripted_envs.VectorEnv, strategy)
  promises = [env.reset(blocking=False)]
  promises += [env.step(ACTION, blocking=False) for _ in range(2)]
  observs = [promise() for promise in reversed(promises)]
  assert [observs[i][0].tolist() for i in (0, 1)] == [[2, 2], [1, 2]]
  assert observs[2].tolist() == [0, 2]


@both
def test_failing_step(start, strategy):
  """The traceback arrives, and every later use is a RuntimeError."""
  env = start(functools.partial(scripted_envs.VectorEnv, crash_at=2), strategy)
  env.reset()
  env.step(ACTION)
  with pytest.raises(hosts.WorkerError) as error:
    env.step(ACTION)
  text = str(error.value)
  assert 'Traceback' in text and 'RuntimeError: boom in step' in text
  assert 'scripted_envs.py' in text
  for use in (env.reset, lambda: env.step(ACTION), lambda: env.magic):
    with pytest.raises(RuntimeError, match='crashed earlier(.|\n)*boom'):
      use()


TERMINAL = """
import os, termios
os.setsid()
terminal = os.open({!r}, os.O_RDWR)
mode = termios.tcgetattr(terminal)
mode[3] |= termios.TOSTOP
termios.tcsetattr(terminal, termios.TCSANOW, mode)
for stream in (0, 1, 2):
  os.dup2(terminal, stream)
from tests import scripted_envs
from agents.envs import external
env = external.Async(scripted_envs.TalkingEnv, 'process')
env.reset()
env.close()
print('done', flush=True)
"""


def test_terminal_that_stops_background_programs():
  """After `stty tostop`, what an environment prints does not stop it."""
  main, side = pty.openpty()
  code = TERMINAL.format(os.ttyname(side))
  program = processes.start_python('-c', code)
  shown = ''
  try:
    with processes.time_limit(60):
      while 'done' not in shown:
        shown += os.read(main, 1000).decode()
      assert program.wait() == 0
  finally:
    program.kill()
    program.wait()
    program.stdout.close()
    os.close(main)
    os.close(side)
  assert 'words of an environment' in shown


@both
def test_failing_constructor(start, strategy):
  env = start(scripted_envs.fail_to_construct, strategy)
  with pytest.raises(hosts.WorkerError, match='broken constructor'):
    env.reset()
  with pytest.raises(RuntimeError, match='broken constructor'):
    _ = env.action_space


@both
@pytest.mark.parametrize(
  'kind', [errors.UsageError, errors.WorkerDeath, errors.NotFinite]
)
def test_explained_errors_stay_what_they_are(start, strategy, kind):
  """The sentence arrives as it is, without traceback."""
  make = functools.partial(scripted_envs.refuse_to_construct, kind)
  env = start(make, strategy)
  with pytest.raises(kind) as error:
    _ = env.action_space
  assert str(error.value) == 'Install something first.'


@both
def test_full_disk_of_a_recording(start, strategy):
  """An error of the system stays one, with its file."""
  full = functools.partial(OSError, errno.ENOSPC, 'No space left on device')
  make = functools.partial(scripted_envs.refuse_to_construct, full)
  env = start(make, strategy)
  with pytest.raises(OSError) as error:
    _ = env.action_space
  assert error.value.errno == errno.ENOSPC
  assert error.value.filename == 'Install something first.'


@both
def test_missing_attribute_is_survived(start, strategy):
  env = start(scripted_envs.VectorEnv, strategy)
  with pytest.raises(AttributeError, match="'VectorEnv'.*'missing'"):
    _ = env.missing
  assert not hasattr(env, 'close_all')
  assert env.reset().tolist() == [0, 2]


@both
def test_close(start, strategy):
  """Closing twice is fine, using afterwards is not."""
  env = start(scripted_envs.VectorEnv, strategy)
  pid = env.pid
  assert (pid == os.getpid()) == (strategy == 'thread')
  env.close()
  env.close()
  assert strategy == 'thread' or not processes.is_running(pid)
  with pytest.raises(RuntimeError, match='closed'):
    env.reset()


@pytest.mark.parametrize(
  'group', [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_closing_may_take_its_time(tmp_path, group):
  """An environment tells how long, also from within a group."""
  names = [str(tmp_path / x) for x in ('first', 'second')]
  makes = [functools.partial(scripted_envs.SlowToClose, x) for x in names]
  if group:
    envs = vector.Vector(vector.Group, makes, 1)
    envs.get('spaces')
    envs.close()
  else:
    envs = [hosts.EnvHost(x, 'process') for x in makes]
    for env in envs:
      env.access(None, 'length')()
    hosts.close_hosts(envs)
  assert all(os.path.exists(x) for x in names)


ORPHAN = """
import functools, sys, time
from agents.envs import external
from tests import scripted_envs
make = functools.partial(scripted_envs.SlowToClose, sys.argv[1])
env = external.Async(make, 'process')
print(env.pid, flush=True)
time.sleep(60)
"""


def test_orphans_may_take_their_time(tmp_path):
  filename = tmp_path / 'file'
  parent = processes.start_python('-c', ORPHAN, str(filename))
  try:
    pid = int(parent.stdout.readline())
    parent.kill()
    assert not processes.wait_for_end([pid], 15)
    assert filename.exists()
  finally:
    parent.kill()
    parent.wait()
    parent.stdout.close()


def test_unknown_strategy():
  with pytest.raises(NotImplementedError, match='other'):
    external.Async(scripted_envs.VectorEnv, 'other')


def test_killed_worker_is_noticed(start):
  """With the exit code, also by waiting promises."""
  env = start(scripted_envs.VectorEnv)
  env.reset()
  os.kill(env.pid, signal.SIGKILL)
  with pytest.raises(RuntimeError, match='exit code -9'):
    env.step(ACTION)
  with pytest.raises(RuntimeError, match='exit code -9'):
    env.reset()


TRACKER = """
import os, time
from multiprocessing import resource_tracker
from agents.envs import hosts
from agents.run import stopping
hosts.start_tracker()
pid = resource_tracker._resource_tracker._pid
for number in stopping.SIGNALS:
  os.kill(pid, number)
time.sleep(0.5)
print(os.waitpid(pid, os.WNOHANG))
"""


def test_signals_leave_shared_memory_to_its_tracker():
  """They go to the whole group, and the program needs the memory to stop."""
  assert processes.run_python('-c', TRACKER) == '(0, 0)\n'


KILLED = """
import os
from agents.envs import shared_arrays
arrays = shared_arrays.Arrays({'x': ((3,), float)}, shared=True)
print(arrays._block.name, flush=True)
os.kill(os.getpid(), 9)
"""


def test_tracker_is_silent():
  """It removes what a killed program leaves, as after a second Ctrl-C."""
  done = subprocess.run(
    [sys.executable, '-c', KILLED],
    cwd=golden.ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=60,
  )
  (name,) = done.stdout.split()
  assert not os.path.exists(f'/dev/shm/{name}')


@pytest.mark.parametrize('number', stopping.SIGNALS)
def test_signals_are_for_the_parent(start, number):
  """From the first moment of a worker on."""
  # Programs in the background ignore SIGINT, as would their workers.
  previous = signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    env = start(scripted_envs.VectorEnv)
  finally:
    signal.signal(signal.SIGINT, previous)
  os.kill(env.pid, number)
  assert env.reset().tolist() == [0, 2]
  os.kill(env.pid, number)
  assert env.step(ACTION)[0].tolist() == [1, 2]


class Forking:
  """Has a fork that it terminates, as environments with simulators do."""

  def step(self, action):
    context = multiprocessing.get_context('fork')
    simulator = context.Process(target=time.sleep, args=(20,), daemon=True)
    simulator.start()
    time.sleep(0.2)
    simulator.terminate()
    simulator.join(10)
    return simulator.exitcode


def test_forks_can_be_terminated(start):
  assert start(Forking).step(ACTION) == -signal.SIGTERM


def test_closures_are_possible(start):
  """Constructors are pickled by value if they have to be."""
  length = 4
  env = start(lambda: scripted_envs.VectorEnv(length))
  assert env.length == 4


def test_workers_know_the_environment_variables(start, monkeypatch):
  monkeypatch.setenv('TEST_OF_ENV_HOST', 'value')

  class Env:
    value = property(lambda self: os.environ['TEST_OF_ENV_HOST'])

  assert start(Env).value == 'value'


MAIN_WITH_TENSORFLOW = """
import sys
import tensorflow
from agents.envs import external
from tests import scripted_envs
if __name__ == '__main__':
  env = external.Async(scripted_envs.VectorEnv, 'process')
  env.reset()
  print('tensorflow' in sys.modules, env.has_tensorflow)
  env.close()
"""


def test_workers_are_free_of_tensorflow(tmp_path):
  """Also if the main program imports it at the top."""
  filename = tmp_path / 'main.py'
  filename.write_text(MAIN_WITH_TENSORFLOW)
  assert processes.run_python(str(filename)).split() == ['True', 'False']


linux = pytest.mark.skipif(sys.platform != 'linux', reason='asks the kernel')

PARENT = """
import ctypes
import signal
import sys
import threading
import time
from agents.envs import external
from tests import scripted_envs
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
class StuckEnv(scripted_envs.SlowEnv):
  def step(self, action):
    # No other thread of the process gets to run meanwhile.
    ctypes.PyDLL(None).sleep(60)
kind = StuckEnv if sys.argv[1] == 'stuck' else scripted_envs.SlowEnv
envs = []
def start():
  envs.extend(external.Async(kind, 'process') for _ in range(2))
if sys.argv[1] == 'of a thread':
  thread = threading.Thread(target=start)
  thread.start()
  thread.join()
else:
  start()
pids = [env.pid for env in envs]
if sys.argv[1] != 'idle':
  for env in envs:
    env.step([0], blocking=False)
print(*pids, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
  'state, number',
  [
    ('idle', 'SIGKILL'),
    ('idle', 'SIGTERM'),
    ('idle', 'SIGINT'),
    ('busy', 'SIGKILL'),
    ('busy', 'SIGTERM'),
    ('busy', 'SIGINT'),
    ('of a thread', 'SIGKILL'),
    pytest.param('stuck', 'SIGKILL', marks=linux),
    pytest.param('stuck', 'SIGTERM', marks=linux),
  ],
)
def test_workers_end_with_their_parent(state, number):
  """However it ends, they are gone within five seconds.

  Busy workers are within a step that takes a minute; those of a thread, too, as
  the kernel ends only what the main thread has started; stuck ones, within C
  code that lets no other thread run.
  """
  parent = processes.start_python('-c', PARENT, state)
  try:
    with processes.time_limit(60):
      pids = [int(x) for x in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(processes.is_running(x) for x in pids)
    parent.send_signal(getattr(signal, number))
    assert not processes.wait_for_end(pids)
  finally:
    parent.kill()
    parent.wait()
    parent.stdout.close()
