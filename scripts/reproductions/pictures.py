"""Contact sheets of the trained agents that are shipped."""

import glob
import os
import subprocess
import tempfile

import numpy as np

from agents.envs import video
from scripts.reproductions import shipping, training
from scripts.reproductions.entry import Entry, executable

# Programs that play and write a video.
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


def draw(entry: Entry, results: str, folder: str) -> str:
  """Play the shipped agent; return the path of a row of small pictures.

  Args:
    entry: What was trained.
    results: Folder of all results.
    folder: Folder of the picture.

  Raises:
    UsageError: If no agent is shipped.
    CalledProcessError: If the program that plays fails.
  """
  agent = shipping.find(entry, results)
  with tempfile.TemporaryDirectory() as place:
    words = _PLAYERS[entry.system].format(agent=agent, folder=place).split()
    command = executable(['python', '-m', *words])
    subprocess.run(command, env=training.make_environ(), check=True)
    (path,) = glob.glob(os.path.join(place, '*.mp4'))
    frames = _read(path)
  small = np.array([video.resize(x, 1, _HEIGHT) for x in frames])
  picture = os.path.join(folder, f'{entry.name}.png')
  video.write_png(picture, video.contact_sheet([small]))
  return picture


def _read(path):
  """Return the frames of a video, uint8 [time, height, width, 3]."""
  from imageio import v3 as imageio

  return imageio.imread(path)
