"""Finding and starting servers."""

import contextlib
import json
import os
import signal
import socket
import stat
import sys
import tempfile
import time

import pytest

pytest.importorskip('carla')
pytest.importorskip('msgpack')

from agents.run import errors  # noqa: E402
from planet.envs.carla import (
  env_config,  # noqa: E402
  settings,  # noqa: E402
)
from planet.envs.carla.backend import BackendError, Episode  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import connect, isolated, launch  # noqa: E402
from tests import processes  # noqa: E402
from tests.planet.envs.carla.server.protocol import handle  # noqa: E402


@pytest.fixture(autouse=True)
def isolated_home(start_server):
  """Also where no server is needed."""


def complete(port, **config):
  """Settings with short timeouts."""
  short = {'timeout': 1.0, 'start_timeout': 1.0, 'map': 'loop'}
  return env_config.complete(
    {'backend': 'server', 'port': port, **short, **config}
  )


def fail(port, **config):
  """Sentence that an environment on a server ends with."""
  with pytest.raises(errors.UsageError) as caught:
    CarlaEnv(complete(port, **config))
  return str(caught.value)


def closed_port():
  with listen_silently() as port:
    return port


@contextlib.contextmanager
def listen_silently():
  """Port of a program that takes connections, and waits for something else."""
  with socket.create_server(('127.0.0.1', 0)) as listener:
    yield listener.getsockname()[1]


def choose(port, **config):
  return settings.find_world(complete(port, **config))


def test_nothing_listens(caplog):
  port = closed_port()
  message = fail(port)
  assert f'no CARLA server at 127.0.0.1:{port} (connection refused)' in message
  assert 'CarlaUE4.sh' in message and 'backend: offline' in message
  assert choose(port) == 'offline'
  (record,) = caplog.records
  assert 'Using the offline backend with map loop' in record.getMessage()
  assert 'connection refused' in record.getMessage()


def test_another_program_listens(caplog):
  with listen_silently() as port:
    began = time.time()
    message = fail(port)
    assert f'127.0.0.1:{port} is open but does not respond' in message
    assert choose(port) == 'offline'
    assert time.time() - began < 20
  assert 'does not respond like CARLA' in caplog.text


def test_another_version(start_server):
  port = start_server(faults={'version': '0.9.15'}).port
  assert 'is version 0.9.15; install 0.9.16' in fail(port, timeout=5.0)
  assert choose(port, timeout=5.0) == 'offline'


@pytest.mark.parametrize('version', ['0.9.16', '0.9.16-dirty'])
def test_right_version(start_server, version):
  """Then `auto` takes it, also if it still loads its town."""
  port = start_server(faults={'version': version, 'loading': 60}).port
  assert choose(port, timeout=5.0) == 'server'
  message = fail(port, timeout=5.0)
  assert 'has not loaded a town within 1 s; raise start_t' in message


def test_unknown_host():
  assert 'There is no CARLA server at no.invalid' in fail(
    2000, host='no.invalid'
  )


def test_addresses_are_ipv4():
  """As servers and clients have nothing else; ::1 is this machine."""
  config = complete(2000, servers=['[::1]:2000', '[::ffff:10.0.0.2]:1', 'a:2'])
  known = [('127.0.0.1', 2000), ('10.0.0.2', 1), ('a', 2)]
  assert connect.list_addresses(config) == known
  assert connect.list_addresses(complete(7, host='::1')) == [('127.0.0.1', 7)]
  config = complete(7, host='[::1]:2000')
  assert connect.list_addresses(config) == [('127.0.0.1', 2000)]
  with pytest.raises(errors.UsageError, match='fe80::1. is an IPv6 address'):
    connect.list_addresses(complete(7, host='[fe80::1]'))


def free_port(first):
  claim = connect.claim_ports(first, 3, 10)
  claim.lock.release()
  return claim.port


def test_highest_ports():
  claim = connect.claim_ports(65533, 3, 10)
  claim.lock.release()
  assert claim.port == 65533


def test_calls_may_take_as_long_as_their_timeouts():
  backend = isolated.IsolatedBackend()
  backend._config = complete(2000, timeout=100.0, map_timeout=500.0)
  assert backend._find_limit('tick') > 100
  assert backend._find_limit('reset') > 500


def make_program(path, code, interpreter=sys.executable):
  path.write_text(f'#!{interpreter}\n{code}\n')
  path.chmod(path.stat().st_mode | stat.S_IXUSR)
  return str(path)


def test_program_that_is_none(tmp_path, monkeypatch):
  monkeypatch.setenv(connect.SERVER_VARIABLE, str(tmp_path / 'CarlaUE4.sh'))
  message = fail(closed_port())
  assert 'is not an executable file; set CARLA_SERVER' in message


def test_program_that_ends_at_once(tmp_path, monkeypatch):
  program = make_program(
    tmp_path / 'server', 'print("no GPU here", flush=True); raise SystemExit(7)'
  )
  log = str(tmp_path / 'run')
  monkeypatch.setenv(connect.SERVER_VARIABLE, program)
  message = fail(closed_port(), server_log=log, start_timeout=30.0)
  assert 'exit code 7' in message and 'no GPU here' in message
  assert len(list((tmp_path / 'run').glob('carla_server_*.log'))) == 1


def test_output_of_a_program_without_a_log(tmp_path, monkeypatch):
  """It goes to a temporary file, of which no descriptor stays open."""
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  program = make_program(tmp_path / 'server', 'raise SystemExit(7)')
  before = len(os.listdir('/proc/self/fd'))
  port = closed_port()
  server = launch.Server(program, port, complete(port))
  with processes.time_limit(30):
    while not server.why_ended():
      time.sleep(0.1)
  server.close()
  assert 'exit code 7' in server.why_ended()
  # Connections of other tests may have ended.
  assert len(os.listdir('/proc/self/fd')) <= before
  assert len(list(tmp_path.glob(f'*/carla_server_{port}.log'))) == 1


def test_program_that_never_answers_leaves_no_process(tmp_path, monkeypatch):
  """The whole group is ended, also what the program has started."""
  # A shell needs little of the time to start.
  code = 'sleep 99 & echo waiting $!; wait'
  program = make_program(tmp_path / 'server', code, '/bin/sh')
  monkeypatch.setenv(connect.SERVER_VARIABLE, program)
  message = fail(closed_port(), server_log=str(tmp_path), start_timeout=3.0)
  assert 'has not loaded a town within 3 s' in message
  (log,) = tmp_path.glob('carla_server_*.log')
  child = int(log.read_text().split()[1])
  assert not processes.wait_for_end([child])


def wait_for_version(port, config):
  """Wait until a program that was started answers."""
  with processes.time_limit(30):
    while True:
      try:
        return connect.connect('127.0.0.1', port, config)
      except errors.UsageError:
        time.sleep(0.1)


@pytest.mark.slow
def test_flags_of_a_program_and_hanging_servers(
  tmp_path, monkeypatch, launcher
):
  """A server of ours that does not load its town is ended after a while.

  Flags, ports and the log are those of the environment.
  """
  monkeypatch.setenv(handle.OPTIONS, json.dumps({'faults': {'loading': 60}}))
  port = free_port(25000)
  backend = isolated.IsolatedBackend()
  config = complete(
    port,
    start_timeout=3.0,
    server_flags=['-ini:x'],
    adapter=1,
    quality='Low',
    server_log=str(tmp_path),
  )
  with pytest.raises(errors.UsageError, match='loaded a town within 3 s'):
    backend.open(config)
  with pytest.raises(BackendError, match='loaded a town within 3 s'):
    backend.reset(Episode((0, 0, 0, 0), 0, 0, 0, 0))
  backend.close()
  output = (tmp_path / f'carla_server_{port}.log').read_text()
  assert output.count('-quality-level=Low') == 2
  assert output.count('-ini:x') == output.count('-graphicsadapter=1') == 2


def test_program_that_answers(tmp_path, launcher):
  """It gets the flags, is found by the client, and ends with us."""
  port = free_port(23000)
  config = complete(port, server_log=str(tmp_path))
  server = launch.Server(launcher, port, config)
  wait_for_version(port, config)
  assert not server.why_ended()
  log = (tmp_path / f'carla_server_{port}.log').read_text()
  assert '-RenderOffScreen' in log and '-quality-level=Epic' in log
  server.close()
  server.close()
  assert not processes.wait_for_end([server.pid])


# Like a script that starts the simulator: it ends at once, the simulator when
# it has cleaned up.
SIMULATOR = """
import signal, sys, time
def end(*args):
  time.sleep(2)
  open(sys.argv[1] + '.clean', 'w').close()
  sys.exit()
signal.signal(signal.SIGTERM, end)
print('simulator', flush=True)
time.sleep(99)
"""
SLOW = f"""
import subprocess, sys
child = subprocess.Popen(
  [sys.executable, '-c', {SIMULATOR!r}, sys.argv[0]], stdout=subprocess.PIPE
)
child.stdout.readline()
print('simulator', child.pid, flush=True)
subprocess.run([{handle.LAUNCHER!r}, *sys.argv[1:]])
"""


def test_program_that_takes_time_to_end(tmp_path, launcher):
  program = make_program(tmp_path / 'server', SLOW)
  port = free_port(23500)
  log = tmp_path / f'carla_server_{port}.log'
  config = complete(port, server_log=str(tmp_path))
  server = launch.Server(program, port, config)
  wait_for_version(port, config)
  server.close()
  child = int(log.read_text().split()[1])
  assert not processes.is_running(child)
  assert (tmp_path / 'server.clean').exists()


@pytest.mark.parametrize('name', ['SIGTERM', 'SIGKILL'])
def test_program_ends_with_us(tmp_path, launcher, name):
  """Also what it has started, and also if we are killed."""
  program = make_program(tmp_path / 'server', SLOW)
  port = free_port(24000)
  config = complete(port, server_log=str(tmp_path))
  config.pop('scenarios')
  code = (
    'from planet.envs.carla.server import launch; import time; '
    f'server = launch.Server({program!r}, {port}, {config!r}); '
    'print(server.pid, flush=True); time.sleep(60)'
  )
  ours = processes.start_python('-c', code)
  try:
    pid = int(ours.stdout.readline())
    wait_for_version(port, config)
    log = tmp_path / f'carla_server_{port}.log'
    child = int(log.read_text().split()[1])
    assert processes.is_running(pid) and processes.is_running(child)
    ours.send_signal(getattr(signal, name))
    ours.wait(30)
    assert not processes.wait_for_end([pid, child], 15)
    assert (tmp_path / 'server.clean').exists()
  finally:
    ours.kill()
    ours.stdout.close()
