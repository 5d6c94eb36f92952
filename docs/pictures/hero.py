"""Draw the picture of README.md from the shipped agents, in 15 minutes.

The episode that is shown is not one of those that the decoder is fitted to.

  python docs/pictures/hero.py
"""

import glob
import os
import subprocess
import sys
import tempfile

import imagine
import numpy as np
from imageio import v3 as imageio
from PIL import Image, ImageDraw, ImageFont

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
OUT = os.path.join(ROOT, 'docs', 'pictures', 'hero.gif')
CONTEXT, FRAMES, SIDE, GAP, STRIP = 5, 50, 192, 8, 26
BACK, TEXT = (24, 24, 24), (235, 235, 235)
SEEN, IMAGINED = (120, 190, 255), (255, 170, 70)


def main() -> None:
  swingup = draw_planet('planet_cartpole_swingup', 'cart-pole', 48, 32)
  driver = draw_planet('carla_loop', 'driver', 80, 0)
  arm = draw_arm()
  frames = [join(*x) for x in zip(swingup, driver, arm)]
  frames += [frames[-1]] * 8
  colors = Image.fromarray(np.concatenate(frames[::10])).quantize(160)
  pictures = [
    Image.fromarray(x).quantize(palette=colors, dither=Image.Dither.NONE)
    for x in frames
  ]
  options = {'duration': 120, 'loop': 0, 'optimize': True}
  pictures[0].save(OUT, save_all=True, append_images=pictures[1:], **options)
  print(f'Wrote {OUT}, {os.path.getsize(OUT) / 1e6:.1f} MB.')


def draw_planet(name, title, count, shown):
  """Frames with the simulator above what the model predicts."""
  folder = os.path.join(ROOT, 'results', 'agents', name)
  episodes = imagine.collect(folder, count)
  episode = episodes.pop(shown)
  model = imagine.Model(folder)
  model.fit(episodes)
  images, _ = model.imagine(episode, CONTEXT)
  frames = []
  for step in range(FRAMES):
    seen = step < CONTEXT
    word = 'sees' if seen else f'imagines, step {step - CONTEXT + 1}'
    below = enlarge(images[step], SIDE)
    below[:4] = below[-4:] = SEEN if seen else IMAGINED
    below[:, :4] = below[:, -4:] = SEEN if seen else IMAGINED
    parts = [
      label(f'{title}: simulator'),
      enlarge(episode['image'][step], SIDE),
    ]
    parts += [label(f'PlaNet {word}', SEEN if seen else IMAGINED), below]
    frames.append(np.concatenate(parts))
  return frames


def draw_arm():
  """Frames of the Fetch robot that HER has trained to pick and place."""
  agent = os.path.join(ROOT, 'results', 'agents', 'her_pick')
  with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, '-m', 'baselines_her.play', agent]
    command += ['--n_test_rollouts=1', '--seed=3', f'--video={folder}/a.mp4']
    subprocess.run(command, check=True, cwd=ROOT)
    (path,) = glob.glob(f'{folder}/*.mp4')
    frames = imageio.imread(path)[:FRAMES]
  side = 2 * SIDE + STRIP
  strip = label('HER: pick and place', width=side)
  return [np.concatenate([strip, enlarge(x, side)]) for x in frames]


def enlarge(image, side):
  kind = Image.Resampling.BICUBIC
  return np.array(Image.fromarray(image).resize((side, side), kind))


def label(text, color=TEXT, width=SIDE):
  strip = Image.new('RGB', (width, STRIP), BACK)
  font = ImageFont.load_default(14)
  place = (4, STRIP // 2)
  ImageDraw.Draw(strip).text(place, text, fill=color, font=font, anchor='lm')
  return np.array(strip)


def join(*columns):
  gap = np.full((len(columns[0]), GAP, 3), BACK, np.uint8)
  parts = [gap] + [y for x in columns for y in (x, gap)]
  return np.concatenate(parts, 1)


if __name__ == '__main__':
  main()
