"""The smoke script on a server, running and launched."""

import os
import random

import pytest

pytest.importorskip('carla')

from planet.envs.carla import roads  # noqa: E402
from tests import golden, processes  # noqa: E402


def smoke(tmp_path, *args):
  """Lines of the report."""
  output = processes.run_python(
    '-m',
    'planet.envs.carla.smoke',
    *('--episodes', '1', '--steps', '30', '--size', '32'),
    *('--out', str(tmp_path)),
    *args,
  )
  lines = (tmp_path / 'report.txt').read_text().splitlines()
  assert lines == [x for x in output.splitlines() if x]
  return lines


def passed(lines):
  assert not [x for x in lines if x.startswith('FAIL')]
  return ' '.join(x for x in lines if x.startswith('PASS'))


def test_on_a_running_server(server, tmp_path):
  server.set(neutral=20)
  lines = smoke(tmp_path, '--port', str(server.port))
  versions = 'Server 0.9.16, package 0.9.16, map Carla/Maps/Town02'
  assert f'{versions}, quality Epic' in lines
  checks = passed(lines)
  for check in (
    'episode 1 moves at once',
    'free start',
    'traffic moves',
    'a killed client ends the episode',
    'the episode after a killed client runs',
    'nothing is left',
    'the server is asynchronous again',
  ):
    assert f'PASS {check}' in checks


@pytest.mark.slow
def test_on_launched_servers(launcher, tmp_path):
  args = '--launch --num-envs 2 --kill-server'.split()
  checks = passed(smoke(tmp_path, *args, '--port', '24000'))
  for check in (
    'side by side',
    'a lost server ends the episode',
    'the episode after a lost server runs',
  ):
    assert f'PASS {check}' in checks


@pytest.mark.slow
def test_on_a_real_town(start_server, tmp_path):
  """Roads and traffic of Town02, of which only the ground is made up."""
  path = os.path.join(golden.FOLDER, 'carla', 'Town02.xodr.gz')
  places = [
    x.transform
    for x in roads.load(path).generate_waypoints(18.0)
    if not x.is_junction
  ]
  random.Random(0).shuffle(places)
  server = start_server(
    map=path,
    points=[
      [[x.location.x, x.location.y, 0.5], [0.0, x.rotation.yaw % 360, 0.0]]
      for x in places[:101]
    ],
    ground=[0.0, 110.0, 190.0, 300.0],
  )
  lines = smoke(
    tmp_path,
    *('--port', str(server.port), '--map', 'Town02'),
    *('--scenario', 'TOWN2_ONE_CURVE_0'),
  )
  assert 'PASS episode 1 ticks' in passed(lines)
