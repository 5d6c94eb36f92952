"""Figures of results: ours over the original's, panels, and filmstrips."""

import dataclasses
import glob
import os
import subprocess
import tempfile

import numpy as np

from agents.envs import video
from agents.run import plot
from scripts.reproductions import curves, shipping, tables, training
from scripts.reproductions.entry import Entry, executable, load

# File of the figure near the top of README.
PANELS = 'panels.png'
_TITLES = ('PlaNet', 'PPO', 'HER', 'CARLA')
# Curves of a panel whose lengths differ by more have a logarithmic abscissa.
_SPREAD = 10
# Programs that play an agent and write a video.
_PLAYERS = {
  'ppo': (
    'agents.visualize_ppo --logdir={agent} --outdir={folder} --num_episodes=1 '
    '--noenv_processes --seed=1'
  ),
  'her': (
    'baselines_her.play {agent} --n_test_rollouts 2 --seed 1 '
    '--video {folder}/play.mp4'
  ),
  'planet': (
    'planet.scripts.evaluate --logdir {agent} --episodes 1 --seed 1 '
    '--video {folder}/play.mp4'
  ),
}
_HEIGHT = 120


def draw(results: str) -> list[str]:
  """Draw the figures of all results, and the panels; return their paths."""
  paths = []
  for entry in load().values():
    folder = os.path.join(results, entry.name)
    if os.path.exists(os.path.join(folder, curves.FILE)):
      paths.append(draw_entry(entry, folder, results))
  return [*paths, *draw_panels(results)]


def draw_entry(entry: Entry, folder: str, results: str) -> str:
  """Draw a result over the curves and values to compare with.

  Args:
    entry: What was trained.
    folder: Folder with the curve, and of the figure.
    results: Folder of all results.

  Returns:
    Path of the figure.
  """
  path = os.path.join(folder, curves.FILE)
  name = 'original code'
  if not entry.reference.endswith('.csv'):
    name = entry.reference
  groups = {
    'ours': curves.read(path),
    'ours, collected with noise': curves.read(path, curves.COLLECTED),
    name: curves.read_reference(entry, results),
  }
  lines = {k: list(v.values()) for k, v in groups.items() if v}
  style = dataclasses.replace(_make_style(entry), levels=entry.levels)
  figure = plot.draw(entry.meaning, lines, style)
  return plot.save(figure, os.path.join(folder, tables.FIGURE))


def draw_panels(results: str) -> list[str]:
  """Draw the panels of README; return the path, none without any curve."""
  panels = []
  for title in _TITLES:
    groups, styles = {}, []
    for entry in load().values():
      ours = curves.read(os.path.join(results, entry.name, curves.FILE))
      if entry.panel == title and ours:
        references = curves.read_reference(entry, results)
        groups[entry.name] = list(ours.values())
        if references:
          name = f'{entry.name}, original code'
          groups[name] = list(references.values())
        styles.append(_make_style(entry))
    if styles:
      ends = [max(x[-1] for x, _ in runs) for runs in groups.values()]
      spread = max(ends) > _SPREAD * min(ends)
      style = dataclasses.replace(styles[0], logarithmic=spread)
      panels.append((title, groups, style))
  if not panels:
    return []
  return [plot.save(plot.draw_panels(panels), os.path.join(results, PANELS))]


def draw_episode(entry: Entry, results: str, folder: str) -> str:
  """Play the shipped agent; return the path of a row of small pictures.

  Args:
    entry: What was trained.
    results: Folder of all results.
    folder: Folder of the picture.

  Raises:
    UsageError: If no agent is shipped.
    CalledProcessError: If the program that plays fails.
  """
  from imageio import v3 as imageio

  agent = shipping.find(entry, results)
  with tempfile.TemporaryDirectory() as place:
    words = _PLAYERS[entry.system].format(agent=agent, folder=place).split()
    command = executable(['python', '-m', *words])
    subprocess.run(command, env=training.make_environ(), check=True)
    (path,) = glob.glob(os.path.join(place, '*.mp4'))
    frames = imageio.imread(path)
  small = np.array([video.resize(x, 1, _HEIGHT) for x in frames])
  picture = os.path.join(folder, f'{entry.name}.png')
  video.write_png(picture, video.contact_sheet([small]))
  return picture


def _make_style(entry):
  """Return how the curves of an entry are drawn: median and quartiles."""
  success = entry.measure == 'success rate'
  return plot.Style(
    ylabel=entry.measure,
    ylim=(-0.02, 1.04) if success else None,
    quartiles=True,
  )
