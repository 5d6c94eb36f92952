"""A training that writes scores as PPO does, and needs no simulator.

Run as python -m tests.scripts.training_program --logdir=FOLDER --seed=N. Ends
with Ctrl-C, and goes on where it was. Under mpirun, the first rank writes.
--needs=FILE fails without that file, and --fail=N once before score N.
"""

import os
import signal
import sys
import time

SCORES = (10, 50, 150, 196, 199, 200)


def main():
  values = dict(x.removeprefix('--').split('=') for x in sys.argv[1:])
  stopped = []
  signal.signal(signal.SIGINT, lambda *unused: stopped.append(True))
  if os.environ.get('OMPI_COMM_WORLD_RANK', '0') != '0':
    values['logdir'] += '-of-another-rank'
  if 'needs' in values:
    os.stat(values['needs'])
  folder = os.path.join(values['logdir'], 'run-training')
  os.makedirs(folder, exist_ok=True)
  path = os.path.join(folder, 'scores.csv')
  if not os.path.exists(path):
    with open(path, 'w') as file_:
      file_.write('phase,global_step,mean_score\n')
  with open(path) as file_:
    done = len(file_.readlines()) - 1
  for index in range(done, len(SCORES)):
    failed = os.path.join(values['logdir'], 'failed')
    if values.get('fail') == str(index) and not os.path.exists(failed):
      open(failed, 'w').close()
      sys.exit(7)
    with open(path, 'a') as file_:
      score = SCORES[index] + int(values['seed'])
      file_.write(f'eval,{100 * (index + 1)},{score}\n')
    # However busy the machine is.
    clock = time.process_time if 'busy' in values else time.monotonic
    waited = clock() + float(values.get('seconds', 0))
    while clock() < waited and not stopped:
      if 'busy' not in values:
        time.sleep(0.02)
    if stopped:
      # A second Ctrl-C would end other programs at once.
      time.sleep(float(values.get('slow-stop', 0)))
      name = f'stopped-{len(stopped)}-times'
      open(os.path.join(values['logdir'], name), 'w').close()
      return
  print('Done.')


if __name__ == '__main__':
  main()
