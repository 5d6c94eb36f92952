"""Pretended servers."""

import functools
import tempfile

import pytest

from planet.envs.carla import env
from planet.envs.carla.server import connect, isolated


@pytest.fixture
def simulators(monkeypatch, tmp_path_factory):
  """Pretended servers by their ports, in threads of this process."""
  # Imports the package, which only these tests need.
  from tests.planet.envs.carla.server import fake_carla

  simulators = {port: fake_carla.Simulator() for port in (2000, 2010)}
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path_factory.mktemp('x')))
  monkeypatch.delenv(connect.SERVER_VARIABLE, raising=False)
  monkeypatch.setattr(
    env,
    'make_backend',
    lambda unused_name: isolated.IsolatedBackend(
      functools.partial(fake_carla.make, simulators), 'thread'
    ),
  )
  fake_carla.install(monkeypatch.setattr, simulators)
  return simulators


@pytest.fixture
def simulator(simulators):
  """The one that clients connect to by default."""
  return simulators[2000]
