"""How all programs end: with a sentence, an exit code, and no traceback."""

import glob
import os
import re
import signal
import subprocess
import sys

import pytest

import agents.run
from tests import golden
from tests.test_vocabulary import list_programs, read_programs

# A mistake of the user in each program, and what the sentence says.
MISTAKES = {
  'agents.check_env': (['nobody:Env-v0'], 'nobody'),
  'agents.pipeline.main': (['--params', 'nobody'], 'nobody'),
  'agents.pipeline.plot': (['nobody'], 'nobody'),
  'agents.plot_scores': (['nobody', '--out=x.png'], 'nobody'),
  'agents.train_ppo': (['--config=nobody'], 'nobody'),
  'agents.visualize_ppo': (['--logdir=nobody', '--outdir=x'], 'nobody'),
  'baselines_her.data_generation': (['--env=nobody', '--out=x.npz'], 'nobody'),
  'baselines_her.play': (['nobody'], 'nobody'),
  'baselines_her.plot': (['nobody'], 'nobody'),
  'baselines_her.run': (['--env=nobody', '--num_timesteps=1'], 'nobody'),
  'planet.envs.carla.smoke': (['--host=nobody.invalid'], 'nobody'),
  'planet.scripts.create_video': (['--input=nobody/*', '--output=x.gif'], ''),
  'planet.scripts.evaluate': (['--logdir=nobody'], 'nobody'),
  'planet.scripts.fetch_events': (['--logdir=nobody', '--outdir=x'], 'nobody'),
  'planet.scripts.plot': (['nobody'], 'nobody'),
  'planet.scripts.sync': (['--source=nobody', '--target=x'], 'nobody'),
  'planet.scripts.train': (['--logdir=x', '--config=nobody'], 'nobody'),
  'scripts.benchmark': (['nobody'], 'nobody'),
  'scripts.carla_policies': (['--map=nobody'], 'nobody'),
  'scripts.compare': (['nobody'], 'nobody'),
  'scripts.reproduce': (['nobody'], 'nobody'),
}
# Short names of other programs.
STUBS = (
  'agents.scripts.train',
  'agents.scripts.visualize',
  'scripts.main',
  'scripts.plot_scores',
)
INTERRUPTED = """
import runpy, sys
from agents.run import entry

def interrupt():
  raise KeyboardInterrupt

start = entry.run
entry.run = lambda unused_function: start(interrupt)
for module in sys.argv[1:]:
  sys.argv = [module]
  try:
    runpy.run_module(module, run_name='__main__')
  except SystemExit as end:
    print(module, end.code)
"""


def run(folder, *args):
  """Run Python in a folder; return exit code, output and errors."""
  result = subprocess.run(
    [sys.executable, *args],
    cwd=folder,
    env={**os.environ, 'PYTHONPATH': golden.ROOT},
    capture_output=True,
    text=True,
    timeout=120,
  )
  return result.returncode, result.stdout, result.stderr


def test_all_programs_are_here():
  """Those of setup.py and of the documentation."""
  named = set(list_programs())
  for path in glob.glob(os.path.join(golden.ROOT, 'docs', '*.md')):
    with open(path) as file_:
      text = file_.read()
    pattern = (
      r'(?:python -m |`)((?:agents|planet|baselines_her|scripts)\.[\w.]+)'
    )
    named |= {x for x in re.findall(pattern, text) if is_program(x)}
  assert named <= {*MISTAKES, *STUBS}


def is_program(module):
  path = os.path.join(golden.ROOT, *module.split('.')) + '.py'
  return os.path.exists(path) and "== '__main__'" in open(path).read()


# Of the parsers, each at least once in the common run.
FLAGS = 'agents.train_ppo', 'baselines_her.run', 'planet.scripts.train', *STUBS


@pytest.mark.parametrize(
  'module',
  [
    x if x in FLAGS else pytest.param(x, marks=pytest.mark.slow)
    for x in sorted([*MISTAKES, *STUBS])
  ],
)
def test_unknown_flag(module, tmp_path):
  code, _, said = run(tmp_path, '-m', module, '--nonsense=1')
  assert code == 2
  assert re.fullmatch(r'Error: .*\n', said)


@pytest.mark.parametrize('module', sorted(MISTAKES))
def test_mistake(module, tmp_path):
  args, words = MISTAKES[module]
  code, _, said = run(tmp_path, '-m', module, *args)
  assert code and 'Traceback' not in said
  assert re.search(f'^Error: .*{words}', said, re.MULTILINE)


EARLY = """
import os, signal, sys

class Finder:
  def find_spec(self, name, path=None, target=None):
    if name == 'agents.run.entry':
      os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.slow
@pytest.mark.parametrize('module', sorted([*MISTAKES, *STUBS]))
def test_interrupted_import(module, tmp_path):
  """Ctrl-C is silent as soon as the first module of the project is there."""
  (tmp_path / 'sitecustomize.py').write_text(EARLY)
  path = f'{tmp_path}:{golden.ROOT}'
  result = subprocess.run(
    [sys.executable, '-m', module, '--help'],
    env={**os.environ, 'PYTHONPATH': path},
    capture_output=True,
    text=True,
    # Ignored in background jobs of a shell.
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
  )
  assert (result.returncode, result.stderr) == (-signal.SIGINT, '')


USERS = """
import os, signal, sys, time
try:
  import agents
  os.kill(os.getpid(), signal.SIGINT)
  time.sleep(10)
except KeyboardInterrupt:
  print('handled')
finally:
  print('cleaned')
"""


@pytest.mark.parametrize(
  'name, args',
  [
    ('ppo-sweep.py', ['ppo-sweep.py']),
    ('her-exp.py', ['her-exp.py']),
    ('planet-train.py', ['planet-train.py']),
    ('sweep.py', ['sweep.py', '-m', 'agents.train_ppo']),
    ('sweep.py', ['-W', 'ignore', 'sweep.py', '-m', 'planet.scripts.train']),
    ('scripts/sweep.py', ['-m', 'scripts.sweep']),
    ('agents-sweep', ['agents-sweep']),
  ],
)
def test_interrupt_of_a_users_program(name, args, tmp_path):
  """It handles Ctrl-C itself, whatever its name and arguments look like."""
  path = tmp_path / name
  path.parent.mkdir(exist_ok=True)
  (path.parent / '__init__.py').touch()
  path.write_text(USERS)
  result = subprocess.run(
    [sys.executable, *args],
    cwd=tmp_path,
    env={**os.environ, 'PYTHONPATH': golden.ROOT},
    capture_output=True,
    text=True,
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
  )
  assert result.stdout == 'handled\ncleaned\n', result.stderr


def test_interrupt_of_the_console_scripts(tmp_path):
  """They are known by their names, those of setup.py."""
  assert set(agents.run.PROGRAMS) == set(read_programs())
  path = tmp_path / 'ppo-train'
  path.write_text('import agents, signal\nprint(signal.getsignal(2))\n')
  for options in ([], ['-W', 'ignore']):
    _, output, _ = run(tmp_path, *options, str(path), '--env=x')
    assert output == f'{signal.SIG_DFL}\n'


@pytest.mark.parametrize('name', ['reproduce', 'benchmark', 'main'])
def test_programs_of_the_checkout_are_files(name, tmp_path):
  """They find their package, too, when they are started by their paths."""
  path = os.path.join(golden.ROOT, 'scripts', f'{name}.py')
  code, output, _ = run(tmp_path, path, '--help')
  assert code == 0 and output.startswith('usage: ')


def test_interrupt(tmp_path):
  """Ctrl-C at any time is no error of the program."""
  modules = [*sorted(MISTAKES), *STUBS]
  code, output, said = run(tmp_path, '-c', INTERRUPTED, *modules)
  assert (code, said) == (0, '')
  assert output.splitlines() == [f'{x} 130' for x in modules]
