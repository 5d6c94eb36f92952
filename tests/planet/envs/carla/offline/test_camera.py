"""What the software camera shows, against geometry done by hand."""

import math

import numpy as np
import pytest

from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import roads, scenarios, sensors
from planet.envs.carla.offline import boxes as boxes_lib
from planet.envs.carla.offline import camera as camera_lib
from planet.envs.carla.offline import texture, weather

pytest.importorskip('carla')
# Focal length of 400 pixels with a field of view of 120 degrees.
FOCAL = 200 / math.tan(math.radians(60))


@pytest.fixture(scope='module')
def ground():
  return texture.Texture(lanes_lib.Lanes(roads.load('loop')))


def render(camera, ground, pose=(-40.0, 31.75, 0.0), boxes=None, index=0):
  return camera.render(
    pose,
    ground,
    weather.make(index),
    boxes or box(-1000, 0),
    np.random.default_rng(0),
  )


def box(x, y, yaw=0.0, size=(1.0, 1.0, 2.0), color=(255, 0, 255), label=0):
  return boxes_lib.Boxes(
    np.array([[x, y, yaw]]),
    np.array([size]),
    np.array([color], float),
    np.zeros(1, bool),
    np.array([label], np.uint8),
  )


def is_purple(image):
  image = image.astype(int)
  return (image[..., 0] > image[..., 1] + 60) & (
    image[..., 2] > image[..., 1] + 60
  )


def test_horizon_is_in_the_middle(ground):
  image = render(camera_lib.Camera(64, 64), ground).astype(int)
  sky = (image[..., 2] > image[..., 1]).all(1)
  assert sky[:32].all()
  assert not sky[34:].any()


def test_lane_vanishes_ahead(ground):
  """Yellow line to the left, white to the right, both where they belong.

  The lines are 1.75 m to the left of the camera's path and 1.6 to 1.75 m to
  the right, seen from a height of 1.4 m.
  """
  camera = camera_lib.Camera(400, 175, supersample=1)
  image = render(camera, ground).astype(int)
  red, green, blue = np.moveaxis(image, -1, 0)
  yellow = (red > 180) & (blue < 110) & (green > 120)
  white = (red > 200) & (blue > 200) & (np.arange(175)[:, None] > 95)
  rows, columns = np.nonzero(yellow)
  assert len(rows) > 50
  down = rows + 0.5 - 87.5
  near = down > 8
  expected = 200 - 1.75 / 1.4 * down[near]
  assert np.abs(columns[near] + 0.5 - expected).max() < 0.15 * down[near].max()
  rows, columns = np.nonzero(white)
  right = columns > 200
  down = (rows + 0.5 - 87.5)[right]
  slopes = (columns[right] + 0.5 - 200)[down > 30] / down[down > 30]
  assert slopes.mean() == pytest.approx(1.675 / 1.4, abs=0.06)


@pytest.mark.parametrize('size, supersample', [(128, 1), (64, 2), (32, 2)])
def test_box_of_known_size(ground, size, supersample):
  """A cube of 2 m, 20 m ahead of the camera and 3 m to its right."""
  camera = camera_lib.Camera(size, size, supersample=supersample)
  pose = (-40.0, 31.75, 0.0)
  # The camera is 2 m ahead; the front face is 1 m before the center.
  cube = box(-40 + 2 + 21, 31.75 + 3)
  mask = is_purple(render(camera, ground, pose, cube))
  rows, columns = np.nonzero(mask)
  left = (200 + FOCAL * 2 / 20) * size / 400
  right = (200 + FOCAL * 4 / 20) * size / 400
  top = (87.5 - FOCAL * 0.6 / 20) * size / 175
  bottom = (87.5 + FOCAL * 1.4 / 20) * size / 175
  # The left side of the cube shows further in.
  far = (200 + FOCAL * 2 / 22) * size / 400
  assert columns.min() == pytest.approx(min(left, far), abs=1)
  assert columns.max() + 1 == pytest.approx(right, abs=1)
  assert rows.min() == pytest.approx(top, abs=1)
  assert rows.max() + 1 == pytest.approx(bottom, abs=1)


def test_turned_camera_sees_the_same(ground):
  """Only the relative pose counts for boxes."""
  camera = camera_lib.Camera(64, 64)
  straight = is_purple(render(camera, ground, (0, 0, 0), box(20, 3)))
  turned = is_purple(
    render(camera, ground, (5, 7, math.pi / 2), box(2, 27, math.pi / 2))
  )
  assert (straight == turned).mean() > 0.999


def test_near_boxes_hide_far_ones(ground):
  far = box(30, 31.75, size=(1, 2, 4), color=(255, 0, 255))
  near = box(15, 31.75, size=(1, 2, 4), color=(0, 0, 255))
  for parts in ([far, near], [near, far]):
    image = render(
      camera_lib.Camera(64, 64), ground, (0, 31.75, 0), boxes_lib.join(parts)
    )
    assert not is_purple(image).any()
  assert is_purple(
    render(camera_lib.Camera(64, 64), ground, (0, 31.75, 0), far)
  ).any()


def test_boxes_behind_and_around_the_camera(ground):
  """Nothing of what is behind; a wall in the face fills the picture."""
  camera = camera_lib.Camera(64, 64)
  assert not is_purple(
    render(camera, ground, (0, 31.75, 0), box(-10, 31.75))
  ).any()
  wall = box(5, 31.75, size=(1.0, 50.0, 50.0))
  assert is_purple(render(camera, ground, (0, 31.75, 0), wall)).mean() > 0.9


def test_supersampling_is_the_mean_of_four(ground):
  """Against NumPy's mean of an image of twice the size."""
  pose, boxes = (0.3, 31.5, 0.1), box(20, 33)
  small = render(camera_lib.Camera(64, 48), ground, pose, boxes)
  large = render(camera_lib.Camera(128, 96, supersample=1), ground, pose, boxes)
  mean = large.reshape(48, 2, 64, 2, 3).astype(int).sum((1, 3))
  np.testing.assert_array_equal(small, (mean + 2) // 4)


def test_direct_rendering_is_close_to_the_camera_of_the_fork(ground):
  """A few gray levels from 400 x 175 pixels resized by area."""
  exact = camera_lib.Camera(400, 175, supersample=1)
  shrink = sensors.SENSORS['use_rgb'].shrink
  for size in (32, 64, 96, 128):
    direct = render(camera_lib.Camera(size, size), ground)
    resized = shrink(render(exact, ground), size, size)
    assert resized.shape == direct.shape == (size, size, 3)
    assert np.abs(direct.astype(int) - resized).mean() < 3


def test_weathers_look_different(ground):
  camera = camera_lib.Camera(64, 64)
  images = [
    render(camera, ground, index=x) for x in range(len(scenarios.WEATHERS))
  ]
  different = {x.tobytes() for x in images}
  assert len(different) >= 13
  noon, sunset = images[1].astype(float), images[8].astype(float)
  assert sunset.mean() < noon.mean()
  dry, wet = images[1][50:, 20:44], images[3][50:, 20:44]
  assert wet.mean() < dry.mean() - 5


def test_moving_changes_the_picture(ground):
  """Half a meter changes some percent of the pixels: speed can be seen."""
  camera = camera_lib.Camera(64, 64)
  first = render(camera, ground, (-40, 31.75, 0)).astype(int)
  second = render(camera, ground, (-39.5, 31.75, 0)).astype(int)
  changed = np.abs(first - second).max(-1) > 8
  assert changed.mean() > 0.05
