"""Finding a server: the real client against sockets that answer or do not."""

import os
import signal
import stat
import sys
import tempfile
import time

import pytest

from agents.run import errors
from planet.envs.carla import env_config
from planet.envs.carla.backend import BackendError, Episode
from planet.envs.carla.env import CarlaEnv
from planet.envs.carla.server import connect, isolated, launch
from planet.scripts import driving
from tests import processes
from tests.planet.envs.carla.server import rpc_stub

pytest.importorskip('carla')


@pytest.fixture(autouse=True)
def no_server_variable(monkeypatch, tmp_path):
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  monkeypatch.delenv(connect.SERVER_VARIABLE, raising=False)


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
  with rpc_stub.listen(rpc_stub.be_silent) as port:
    pass
  return port


def choose(port):
  return driving.find_world(complete(port))


def test_nothing_listens(caplog):
  port = closed_port()
  message = fail(port)
  assert f'no CARLA server at 127.0.0.1:{port} (connection refused)' in message
  assert 'CarlaUE4.sh' in message and 'carla_backend: offline' in message
  assert choose(port) == 'offline'
  (record,) = caplog.records
  assert 'Using the offline backend, map loop' in record.getMessage()
  assert 'connection refused' in record.getMessage()


def test_another_program_listens(caplog):
  with rpc_stub.listen(rpc_stub.be_silent) as port:
    began = time.time()
    message = fail(port)
    assert f'127.0.0.1:{port} is open but does not answer as CARLA' in message
    assert choose(port) == 'offline'
    assert time.time() - began < 20
  assert 'does not answer as CARLA' in caplog.text


def test_another_version():
  with rpc_stub.listen(rpc_stub.answer_version('0.9.15')) as port:
    message = fail(port)
    assert 'is version 0.9.15; install 0.9.16' in message
    assert choose(port) == 'offline'


@pytest.mark.parametrize('version', ['0.9.16', '0.9.16-dirty'])
def test_right_version(version):
  """Then `auto` takes it; what the stub lacks is one sentence, too."""
  with rpc_stub.listen(rpc_stub.answer_version(version)) as port:
    assert choose(port) == 'server'
    message = fail(port)
    assert 'does not show a town within 1 s; give carla_start_t' in message


def test_unknown_host():
  assert 'There is no CARLA server at no.invalid' in fail(
    2000, host='no.invalid'
  )


def free_port(first):
  claim = connect.claim_ports(first, 3, 10)
  claim.lock.release()
  return claim.port


def make_program(path, code):
  path.write_text(f'#!{sys.executable}\n{code}\n')
  path.chmod(path.stat().st_mode | stat.S_IXUSR)
  return str(path)


def test_program_that_is_none(tmp_path, monkeypatch):
  monkeypatch.setenv(connect.SERVER_VARIABLE, str(tmp_path / 'CarlaUE4.sh'))
  message = fail(closed_port())
  assert 'is not a program that can be run; set CARLA_SERVER' in message


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
  assert len(os.listdir('/proc/self/fd')) == before
  assert len(list(tmp_path.glob(f'*/carla_server_{port}.log'))) == 1


SLEEPY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'])
print('waiting', child.pid, flush=True)
time.sleep(99)
"""


def test_program_that_never_answers_leaves_no_process(tmp_path, monkeypatch):
  """The whole group is ended, also what the program has started."""
  program = make_program(tmp_path / 'server', SLEEPY)
  monkeypatch.setenv(connect.SERVER_VARIABLE, program)
  message = fail(closed_port(), server_log=str(tmp_path), start_timeout=3.0)
  assert 'does not show a town within 3 s' in message
  (log,) = tmp_path.glob('carla_server_*.log')
  child = int(log.read_text().split()[1])
  assert not processes.wait_for_end([child])


ANSWERING = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
import time
from tests.planet.envs.carla.server import rpc_stub
import socket
port = int([x for x in sys.argv if x.startswith('-carla-rpc-port=')][0][16:])
server = socket.create_server(('127.0.0.1', port))
print(sys.argv[1:], flush=True)
while True:
  connection, _ = server.accept()
  import threading
  threading.Thread(
    target=rpc_stub.answer_version('0.9.16'), args=(connection,), daemon=True
  ).start()
"""


def wait_for_version(port, config):
  """Wait until a program that was started answers."""
  with processes.time_limit(30):
    while True:
      try:
        return connect.connect('127.0.0.1', port, config)
      except errors.UsageError:
        time.sleep(0.1)


HANGING = ANSWERING.replace(
  'print(sys.argv',
  "open(sys.argv[0] + '.starts', 'a').write('x'); print(sys.argv",
)


def test_flags_of_a_program_and_hanging_servers(tmp_path, monkeypatch):
  """A server of ours that does not load its town is ended after a while.

  Flags, ports and the log are those of the environment.
  """
  program = make_program(tmp_path / 'server', HANGING)
  monkeypatch.setenv(connect.SERVER_VARIABLE, program)
  port = free_port(25000)
  backend = isolated.IsolatedBackend()
  config = complete(
    port,
    start_timeout=4.0,
    server_flags=['-ini:x'],
    adapter=1,
    quality='Low',
    server_log=str(tmp_path),
  )
  with pytest.raises(errors.UsageError, match='show a town within 4 s'):
    backend.open(config)
  with pytest.raises(BackendError, match='show a town within 4 s'):
    backend.reset(Episode((0, 0, 0, 0), 0, 0, 0, 0))
  backend.close()
  assert (tmp_path / 'server.starts').read_text() == 'xx'
  output = (tmp_path / f'carla_server_{port}.log').read_text()
  assert "'-quality-level=Low'" in output
  assert "'-ini:x', '-graphicsadapter=1'" in output


def test_program_that_answers(tmp_path):
  """It gets the flags, is found by the client, and ends with us."""
  program = make_program(tmp_path / 'server', ANSWERING)
  port = free_port(23000)
  config = complete(port, server_log=str(tmp_path))
  server = launch.Server(program, port, config)
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
{ANSWERING}
"""


def test_program_that_takes_time_to_end(tmp_path):
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
def test_program_ends_with_us(tmp_path, name):
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
