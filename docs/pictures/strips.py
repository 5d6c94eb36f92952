"""Draw two episodes of each shipped agent, four frames of each, in 10 minutes.

python docs/pictures/strips.py [NAME ...]
"""

import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
from imageio import v3 as imageio
from PIL import Image

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
SIDE, GAP, FRAMES, SEEDS = 192, 8, 4, (3, 4)
PLANET = 'planet.scripts.evaluate --logdir {agent} --episodes 1'
PLANET += ' --video {out}/a.mp4 --seed {seed}'
COMMANDS = {
  'her': 'baselines_her.play {agent} --n_test_rollouts=1 --seed={seed}'
  ' --video={out}/a.mp4',
  'planet': PLANET,
  'carla': PLANET,
  'ppo': 'agents.visualize_ppo --logdir={agent} --num_episodes=1'
  ' --seed={seed} --outdir={out}',
}


def main() -> None:
  folders = os.path.join(ROOT, 'results', 'agents', '*')
  names = sys.argv[1:] or [os.path.basename(x) for x in glob.glob(folders)]
  for name in names:
    gap = np.full((SIDE, GAP, 3), 255, np.uint8)
    rows = []
    for seed in SEEDS:
      video = play(name, seed)
      # More of the beginning, where more happens; the last frame may be the
      # first one of the next episode.
      shares = np.linspace(0, 1, FRAMES) ** 2
      chosen = (shares * (len(video) - 2)).astype(int)
      row = [x for y in video[chosen] for x in (enlarge(y), gap)]
      rows.append(np.concatenate(row[:-1], 1))
    between = np.full((3 * GAP, rows[0].shape[1], 3), 255, np.uint8)
    picture = np.concatenate([rows[0], between, rows[1]])
    path = os.path.join(ROOT, 'docs', 'pictures', f'{name}.png')
    imageio.imwrite(path, picture)
    print(f'Wrote {path}.', flush=True)


def play(name, seed):
  """Return the frames of an episode, uint8 [time, height, width, 3]."""
  agent = os.path.join(ROOT, 'results', 'agents', name)
  command = COMMANDS[name.split('_')[0]]
  with tempfile.TemporaryDirectory() as out:
    words = command.format(agent=agent, out=out, seed=seed).split()
    subprocess.run([sys.executable, '-m', *words], check=True, cwd=ROOT)
    (path,) = glob.glob(f'{out}/**/*.mp4', recursive=True)
    return imageio.imread(path)


def enlarge(image):
  """Return an image whose height is that of all strips."""
  height, width, _ = image.shape
  size = width * SIDE // height, SIDE
  return np.array(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))


if __name__ == '__main__':
  main()
