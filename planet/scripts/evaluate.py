"""Evaluate a trained PlaNet agent.

Example:

  planet-evaluate --logdir ~/logdir --episodes 10 --video

Prints the return of each episode, and their mean and standard deviation.
--video also writes a contact sheet, a PNG next to the video.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.envs import video
from agents.run import entry, errors, files, progress, references, stopping

if TYPE_CHECKING:
  # Importing it loads TensorFlow, which `--help` does without.
  from planet.tools.attr_dict import AttrDict

_SHEET_ROWS = 10


def main(args: Any) -> None:
  """Play the episodes, print the scores, write video and contact sheet.

  Args:
    args: Namespace of `parse_args`.

  Raises:
    UsageError: If there is no run or no checkpoint, or the video cannot be
      written.
  """
  from planet import trained

  trust = references.parse(args.trust)
  restored = trained.restore(
    args.logdir, args.checkpoint, args.params, args.seed, trust
  )
  path, config, _ = restored
  filename = None
  if args.video is not None:
    filename = _choose_video(args.video, path, config)
  print(f'Playing with {path}.')
  scores, videos = [], []
  try:
    for episode in play(restored, args.episodes, bool(filename)):
      steps = len(episode.rewards) * episode.action_repeat
      print(
        f'Episode {episode.number} of {episode.task}: '
        f'return {episode.score:.1f}, {steps} environment steps.',
        flush=True,
      )
      scores.append(episode.score)
      if filename:
        videos.append(annotate(episode))
  finally:
    if scores:
      print(
        f'Mean return {np.mean(scores):.1f}, standard deviation '
        f'{np.std(scores):.1f}, {len(scores)} episodes.'
      )
    if filename and videos:
      write_pictures(filename, videos, args.fps)


def play(
  restored: tuple[Any, ...], episodes: int, overview: bool = False
) -> 'Iterator[AttrDict]':
  """Play episodes of all tasks of a run.

  Args:
    restored: What `planet.trained.restore` returns.
    episodes: Number of episodes per task.
    overview: Whether to keep maps from above.

  Yields:
    Episodes as `planet.training.playing.play` returns them, with the `number`
    of the episode from 1 on and the `action_repeat` of its task.
  """
  from planet.tools.attr_dict import AttrDict
  from planet.training import playing

  bar = progress.Progress()

  def show(steps, unused_score):
    stopping.check()
    bar.update(1, steps)

  path, config, shapes = restored
  try:
    for name, simulation in config.test_collects.items():
      with (
        playing.PlaNet(path, config, shapes, name) as agent,
        contextlib.closing(agent.make_env()) as env,
      ):
        for number in range(1, episodes + 1):
          bar.start_phase(f'Episode {number}', simulation.task.max_length, 0, 0)
          episode = playing.play(agent, env, show, overview)
          repeat = simulation.task.action_repeat
          yield AttrDict(episode, number=number, action_repeat=repeat)
  finally:
    bar.close()


def annotate(episode: 'AttrDict') -> np.ndarray:
  """Enlarge frames of an episode, with time and return below.

  Args:
    episode: AttrDict with `observations` uint8 [time, height, width, channels],
      `rewards` [time], `number` and `action_repeat`. With `maps` uint8 [time,
      height, width, 3], these are shown beside the frames, and actions and
      rewards below.

  Returns:
    uint8 array [time, larger height, larger width, 3].
  """
  frames = video.to_rgb(episode.observations)
  frames = np.stack([video.resize(x) for x in frames])
  if episode.get('maps') is not None:
    return _annotate_drive(episode, frames)
  returns = np.cumsum(episode.rewards)
  return np.stack(
    [
      video.caption(frame, f'{_count(episode, step)}  return {return_:.1f}')
      for step, (frame, return_) in enumerate(zip(frames, returns), 1)
    ]
  )


def _count(episode, step):
  """Words for where a frame is, in steps of the environment."""
  return f'episode {episode.number}  step {step * episode.action_repeat}'


def _annotate_drive(episode, frames):
  """Show the map beside the frames, and two lines of numbers below."""
  height = max(frames.shape[1], episode.maps.shape[1])
  results, total = [], 0.0
  for step in range(len(frames)):
    total += episode.rewards[step]
    parts = [_center(x, height) for x in (frames[step], episode.maps[step])]
    drive, steer = episode.actions[step]
    picture = np.concatenate(parts, 1)
    for text in (
      f'{_count(episode, step + 1)}  return {total:.1f}  '
      f'reward {episode.rewards[step]:.2f}',
      f'throttle {max(drive, 0):.2f}  brake {max(-drive, 0):.2f}  '
      f'steer {steer:+.2f}',
    ):
      picture = video.caption(picture, text)
    results.append(picture)
  return np.stack(results)


def _center(image, height):
  """Continue the upper and lower edge, which are ground in maps."""
  above = (height - len(image)) // 2
  below = height - len(image) - above
  return np.pad(image, ((above, below), (0, 0), (0, 0)), mode='edge')


def write_pictures(filename: str, videos: list[np.ndarray], fps: float) -> None:
  """Write all episodes to one video, and a contact sheet beside it."""
  video.write_video(filename, np.concatenate(videos), fps)
  sheet = os.path.splitext(filename)[0] + '.png'
  video.write_png(sheet, video.contact_sheet(videos[:_SHEET_ROWS]))
  print(f'Wrote {filename} and {sheet}.')


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  from planet.scripts import train

  parser = argparse.ArgumentParser(
    prog='planet-evaluate',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add(
    '--logdir',
    required=True,
    help='folder of the run or experiment',
  )
  add('--episodes', type=int, default=10, help='episodes per task')
  text = 'write a video (.mp4 or .gif); default: in videos/ of the run'
  add('--video', nargs='?', const='', metavar='FILE', help=text)
  add('--fps', type=float, default=20, help='frames per second of the video')
  text = 'checkpoint, such as model.ckpt-1000 or best; default: the newest'
  add('--checkpoint', default=None, help=text)
  add('--seed', type=int, default=None, help='seed of environment and planner')
  add('--params', default='{}', help='planner parameters as a YAML mapping')
  add('--trust', action='append', metavar='MODULE', help=references.HELP)
  args = parser.parse_args(argv)
  args.params = train.parse_params(args.params)
  if args.episodes < 1:
    raise errors.UsageError(
      f'Flag --episodes is {args.episodes}; give at least 1.'
    )
  return args


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def work():
    args = parse_args(argv)
    with stopping.handle_signals('Stopping; press Ctrl-C again to exit.'):
      main(args)

  return entry.run(work)


def _choose_video(given, checkpoint_path, config):
  """Name of the video, within the run if none is given."""
  if config.observation != 'image':
    raise errors.UsageError(
      'This run has learned from vectors and sees no images; evaluate it '
      'without --video.'
    )
  logdir, name = os.path.split(checkpoint_path)
  filename = os.path.expanduser(given) or os.path.join(
    logdir, 'videos', name + video.preferred_ending()
  )
  video.check_ending(filename)
  files.check_creatable(os.path.dirname(filename))
  return filename


if __name__ == '__main__':
  sys.exit(run())
