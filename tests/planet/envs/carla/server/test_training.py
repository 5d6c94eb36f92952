"""A run of PlaNet that drives on servers."""

import json
import signal
import time

import pytest

pytest.importorskip('carla')

from tests import processes  # noqa: E402

# Of the preset, without the size of the work.
PARAMS = dict(
  carla_backend='server',
  carla_map='Town02',
  carla_vehicles=2,
  carla_pedestrians=1,
  action_repeat=10,
  max_length=200,
  num_seed_episodes=1,
  batch_shape=[4, 10],
  train_steps=24,
  test_steps=4,
  collect_every=12,
  checkpoint_every=4,
  max_steps=56,
  planner_amount=20,
  planner_topk=4,
  planner_iterations=2,
)


def count_episodes(logdir, phase):
  return len(list(logdir.glob(f'*/{phase}_episodes/*.npz')))


@pytest.mark.slow
def test_training_is_killed_and_continues(start_server, tmp_path):
  """An epoch trains, tests and collects; then the next ones do."""
  servers = [start_server(), start_server()]
  addresses = [f'127.0.0.1:{x.port}' for x in servers]
  args = ['-m', 'planet.scripts.train', '--config', 'carla_cpu']
  args += ['--logdir', str(tmp_path)]
  args += ['--params', json.dumps({**PARAMS, 'carla_servers': addresses})]
  program = processes.start_python(*args)
  try:
    with processes.time_limit(600):
      while count_episodes(tmp_path, 'train') < 2:
        assert program.poll() is None, program.stdout.read()
        time.sleep(0.2)
      program.send_signal(signal.SIGKILL)
      program.wait()
  finally:
    program.kill()
    program.stdout.close()
  before = count_episodes(tmp_path, 'train')
  processes.run_python(*args, seconds=900)
  assert count_episodes(tmp_path, 'train') > before
  assert count_episodes(tmp_path, 'test') > 1
  one = json.dumps({'carla_servers': addresses[:1]})
  played = ['--logdir', str(tmp_path), '--episodes', '1', '--params', one]
  processes.run_python('-m', 'planet.scripts.evaluate', *played, seconds=300)
  for server in servers:
    state = server.look()
    assert state.town == 'Town02' and state.calls['tick_cue'] > 300
    assert not state.actors and not state.synchronous and not state.managers
    assert not state.unknown
