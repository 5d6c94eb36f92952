"""Servers, and an empty home, so that caches of real ones are not mixed up."""

import contextlib
import sys
import tempfile

import pytest

from planet.envs.carla.server import connect


@pytest.fixture
def start_server(monkeypatch, tmp_path_factory):
  """Function that starts a protocol server, see `protocol.handle.Server`."""
  carla = pytest.importorskip('carla')
  pytest.importorskip('msgpack')
  from tests.planet.envs.carla.server.protocol import handle

  home = str(tmp_path_factory.mktemp('home'))
  for name in ('HOME', 'TMPDIR'):
    monkeypatch.setenv(name, home)
  monkeypatch.setattr(tempfile, 'tempdir', home)
  monkeypatch.delenv(connect.SERVER_VARIABLE, raising=False)
  # Clients of this process do not look at $HOME any more; needs no server.
  carla.Client('127.0.0.1', 1).set_files_base_folder(home + '/carlaCache/')
  with contextlib.ExitStack() as stack:
    yield lambda **options: stack.enter_context(
      contextlib.closing(handle.Server(**options))
    )


@pytest.fixture
def server(start_server):
  """A protocol server in which nothing is wrong."""
  return start_server()


@pytest.fixture
def launcher(start_server, monkeypatch):
  """Let environments start protocol servers of their own, as CarlaUE4.sh."""
  from tests.planet.envs.carla.server.protocol import handle

  monkeypatch.setenv(connect.SERVER_VARIABLE, handle.LAUNCHER)
  monkeypatch.setenv('PYTHON', sys.executable)
  return handle.LAUNCHER
