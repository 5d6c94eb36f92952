"""Appearance of weather: light, sky colors, fog and rain."""

import dataclasses
import functools

import numpy as np

from planet.envs.carla import scenarios
from planet.envs.carla.offline import texture

# Distances in meters of the fog levels.
LEVELS = 16
DISTANCES = np.geomspace(2.0, 300.0, LEVELS)


@dataclasses.dataclass(frozen=True)
class Look:
  """Appearance of one weather.

  Attributes:
    light: Brightness and tint, float64 [3].
    zenith, horizon: Sky colors, float64 [3] from 0 to 255.
    fog: Fraction of light lost per meter.
    rain: Number of drops per 1000 pixels.
    palette: Packed ground colors by fog level, uint32 [16, 256].
  """

  light: np.ndarray
  zenith: np.ndarray
  horizon: np.ndarray
  fog: float
  rain: float
  palette: np.ndarray

  def shade(
    self, colors: np.ndarray, distances: np.ndarray | float
  ) -> np.ndarray:
    """Apply light and fog to surface colors and pack them.

    Args:
      colors: Colors from 0 to 255, [..., 3].
      distances: Meters, broadcast to the colors without channels.

    Returns:
      uint32 [...].
    """
    clear = np.exp(-self.fog * np.asarray(distances))[..., None]
    return pack(colors * self.light * clear + self.horizon * (1 - clear))


def pack(colors: np.ndarray) -> np.ndarray:
  """Pack colors from 0 to 255, [..., 3], as uint32 in memory order."""
  channels = np.zeros(colors.shape[:-1] + (4,), np.uint8)
  channels[..., :3] = np.minimum(colors + 0.5, 255)
  return channels.view(np.uint32)[..., 0]


@functools.cache
def make(index: int) -> Look:
  """Return the look of a weather by its index in `scenarios.WEATHERS`."""
  name = scenarios.WEATHERS[index]
  sunset = name.endswith('Sunset')
  cloudy = 'Cloudy' in name or 'Rain' in name
  wet = 'Wet' in name or 'Rain' in name
  rain = 0.0
  for word, amount in (('Soft', 2.0), ('Mid', 5.0), ('Hard', 12.0)):
    rain = amount if word in name else rain
  light = np.array([1.0, 0.78, 0.6]) * 0.8 if sunset else np.ones(3)
  light = light * (0.78 if cloudy else 1.0)
  zenith, horizon = np.array([84, 140, 214.0]), np.array([196, 216, 236.0])
  if sunset:
    zenith, horizon = np.array([96, 96, 150.0]), np.array([244, 176, 118.0])
  if cloudy:
    gray = np.array([168, 172, 178.0])
    zenith, horizon = (zenith + 3 * gray) / 4, (horizon + 3 * gray) / 4
  fog = 0.002 + 0.004 * cloudy + 0.0015 * rain
  look = Look(light, zenith, horizon, fog, rain, np.zeros(0))
  palette = look.shade(_ground(wet)[None], DISTANCES[:, None])
  return dataclasses.replace(look, palette=palette)


def _ground(wet):
  """Return ground colors, float64 [256, 3]; wet asphalt is darker."""
  colors = np.zeros((256, 3))
  for (first, last), dark, bright in (
    (texture.GRASS, (52, 92, 36), (112, 150, 66)),
    (texture.ASPHALT, (78, 78, 82), (104, 104, 108)),
    (texture.SHOULDER, (150, 140, 122), (172, 162, 144)),
  ):
    share = np.linspace(0, 1, last - first)[:, None]
    dark, bright = (1 - share) * np.array(dark), share * np.array(bright)
    colors[first:last] = dark + bright
  if wet:
    colors[slice(*texture.ASPHALT)] *= 0.65
  colors[texture.WHITE] = 240
  colors[texture.YELLOW] = (232, 188, 40)
  return colors
