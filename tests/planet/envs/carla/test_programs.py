"""The smoke script, the map from above, and the driving video."""

import csv
import socket

import imageio.v2 as imageio
import numpy as np
import pytest

pytest.importorskip('carla')

from planet.envs.carla import smoke as smoke_lib  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import connect  # noqa: E402
from planet.scripts import evaluate  # noqa: E402
from planet.tools.attr_dict import AttrDict  # noqa: E402

RED, BLUE = (240, 50, 50), (70, 120, 230)


def smoke(tmp_path, *args):
  small = ['--steps', '30', '--size', '32', '--out', str(tmp_path)]
  return smoke_lib.run(['--backend', 'offline', *small, *args])


def test_smoke_script(tmp_path, capsys):
  """Every check that needs no server passes, files are written."""
  args = ['--episodes', '2', '--map', 'loop']
  assert smoke(tmp_path, *args) == 0
  output = capsys.readouterr().out
  assert 'FAIL' not in output and output.count('PASS') > 8
  with open(tmp_path / 'measurements.csv') as file_:
    rows = list(csv.DictReader(file_))
  assert len(rows) == 60 and float(rows[-1]['forward_speed']) > 5
  assert imageio.imread(tmp_path / 'episodes.png').std() > 5


def test_home_folder(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  assert smoke_lib.parse_args(['--out=~/x']).out == '/home/me/x'


def test_smoke_script_can_fail(tmp_path, capsys):
  """Three seconds of full throttle on a straight hit nothing."""
  args = ['--episodes', '1', '--map', 'loop', '--drive', 'full_throttle']
  assert smoke(tmp_path, *args) == 1
  assert 'FAIL contacts count once 0 contacts' in capsys.readouterr().out


@pytest.mark.parametrize(
  'args, message',
  [
    (['--launch'], 'path of CarlaUE4.sh in $CARLA_SERVER'),
    (['--kill-server'], 'need --launch'),
    (['--num-envs', '2'], 'need --launch'),
    (['--backend', 'offline', '--launch'], 'need --backend server'),
    (['--steps', '0'], 'greater than or equal to 1'),
  ],
)
def test_smoke_script_refuses(args, message, capsys, monkeypatch, tmp_path):
  monkeypatch.delenv(connect.SERVER_VARIABLE, raising=False)
  assert smoke_lib.run(['--out', str(tmp_path / 'x'), *args]) == 2
  assert message in capsys.readouterr().err
  assert not (tmp_path / 'x').exists()


def test_smoke_script_without_server(capsys, tmp_path):
  with socket.create_server(('127.0.0.1', 0)) as listener:
    port = listener.getsockname()[1]
  assert smoke_lib.run(['--out', str(tmp_path), '--port', str(port)]) == 2
  assert 'There is no CARLA server' in capsys.readouterr().err


def test_map_from_above():
  """The vehicle is where it is, and the way leads from it to the goal."""
  env = CarlaEnv({'map': 'grid', 'x_res': 32, 'y_res': 32, 'seed': 1})
  env.reset()
  before = env.birdseye
  assert before.dtype == np.uint8 and max(before.shape[:2]) == 256
  car = np.argwhere((before == RED).all(-1))
  assert len(car) == 49
  assert (before == BLUE).all(-1).sum() > 20
  for _ in range(60):
    env.step(np.float32([1, 0]))
  after = np.argwhere((env.birdseye == RED).all(-1))
  assert np.abs(after.mean(0) - car.mean(0)).max() > 10


@pytest.mark.parametrize('size', [(100, 256), (256, 99)])
@pytest.mark.parametrize('channels, width', [(3, 256), (1, 256), (6, 512)])
def test_video_of_driving(channels, width, size):
  """Camera beside the map, two lines of numbers below; one size for all."""
  episode = AttrDict(
    observations=np.full([3, 64, 64, channels], 200, np.uint8),
    maps=np.full([3, *size, 3], 100, np.uint8),
    rewards=np.float32([1, 2, 3]),
    actions=np.float32([[0.5, 0.1], [-0.5, 0], [0, -1]]),
    captions=['left', None, 'right'],
    number=1,
    action_repeat=2,
  )
  frames = evaluate.annotate(episode)
  assert frames.shape == (3, 256 + 48, width + 256, 3)
  assert (frames[:, :256, :width] == 200).all()
  # A map that is not square has its ground around it, and no black.
  assert (frames[:, :256, width:] == 100).all()
  captions = {x[256:].tobytes() for x in frames}
  assert len(captions) == 3
