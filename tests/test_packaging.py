"""What users install: files, programs, extras, Pythons, the container."""

import ast
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests import golden

PACKAGES = ('agents', 'baselines_her', 'planet')
# Names that are wanted by users of all systems.
PROGRAMS = {
  'planet-train',
  'planet-evaluate',
  'ppo-train',
  'ppo-visualize',
  'her-train',
  'her-play',
  'agents-session',
}


def read(*names):
  with open(os.path.join(golden.ROOT, *names)) as file_:
    return file_.read()


def run(*command, **options):
  """Output of a command that has to succeed."""
  result = subprocess.run(command, capture_output=True, text=True, **options)
  assert result.returncode == 0, result.stdout + result.stderr
  return result.stdout


def tracked():
  """Paths of what a fresh checkout holds."""
  names = run('git', 'ls-files', '-co', '--exclude-standard', cwd=golden.ROOT)
  return [x for x in names.splitlines() if os.path.exists(f'{golden.ROOT}/{x}')]


@pytest.fixture(scope='module')
def dists(tmp_path_factory):
  """Paths of sdist and wheel, built from a copy of the checkout."""
  source = tmp_path_factory.mktemp('source')
  for name in tracked():
    (source / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(os.path.join(golden.ROOT, name), source / name)
  run(
    *(sys.executable, 'setup.py', '-q', 'sdist', 'bdist_wheel'),
    cwd=source,
    env={**os.environ, 'PYTHONWARNINGS': 'ignore'},
  )
  return [glob.glob(f'{source}/dist/{x}')[0] for x in ('*.tar.gz', '*.whl')]


def read_metadata(path):
  """Names of the files in a wheel, and the texts of its metadata."""
  with zipfile.ZipFile(path) as archive:
    names = archive.namelist()
    texts = {
      os.path.basename(x): archive.read(x).decode()
      for x in names
      if '.dist-info/' in x
    }
  return [x for x in names if '.dist-info/' not in x], texts


@pytest.fixture(scope='module')
def wheel(dists):
  return read_metadata(dists[1])


def find_programs(texts):
  """Dict from program to `module:function`."""
  lines = texts['entry_points.txt'].splitlines()
  return dict(x.split(' = ') for x in lines if ' = ' in x)


def test_wheel_holds_all_files(wheel):
  """Every file of the packages, such as CARLA's maps, and nothing else."""
  folders = tuple(f'{x}/' for x in PACKAGES)
  expected = [x for x in tracked() if x.startswith(folders)]
  assert len([x for x in expected if '/carla/maps/' in x]) > 1
  assert sorted(wheel[0]) == sorted(expected)


def test_programs_exist(wheel):
  """Each is a function of a module that is in the wheel."""
  names, texts = wheel
  programs = find_programs(texts)
  assert set(programs) >= PROGRAMS
  for target in programs.values():
    module, _, function = target.partition(':')
    path = module.replace('.', '/') + '.py'
    assert path in names
    tree = ast.parse(read(path))
    assert function in {getattr(x, 'name', None) for x in tree.body}, target


def test_docs_name_all_programs(wheel):
  """With their modules, in a table; and no program that does not exist."""
  programs = find_programs(wheel[1])
  table = read('docs', 'programs.md')
  for name, target in programs.items():
    assert f'`{name}`' in table, name
    assert f'`{target.partition(":")[0]}`' in table, target
  pages = glob.glob(os.path.join(golden.ROOT, 'docs', '*.md'))
  for path in [*pages, os.path.join(golden.ROOT, 'README.md')]:
    # Commands have one spelling; modules of the checkout have no other.
    modules = set(re.findall(r'python -m ([\w.]+)', read(path)))
    assert not modules & {x.partition(':')[0] for x in programs.values()}, path
    begin = r'(?:planet|ppo|her|agents)-(?:[a-z]+-?)+'
    named = set(re.findall(rf'^    ({begin})\b', read(path), re.M))
    assert named <= set(programs), (path, named - set(programs))


def test_foreign_agents_package(tmp_path):
  """A clear sentence where another package is imported as `agents`."""
  (tmp_path / 'agents').mkdir()
  (tmp_path / 'agents' / '__init__.py').touch()
  for package in ('planet', 'baselines_her'):
    result = subprocess.run(
      [sys.executable, '-S', '-c', f'import {package}'],
      cwd=tmp_path,
      env={**os.environ, 'PYTHONPATH': golden.ROOT},
      capture_output=True,
      text=True,
    )
    assert 'does not belong to reference-agents' in result.stderr


def test_results_stay_out_of_the_source_distribution(dists):
  with tarfile.open(dists[0]) as archive:
    names = [x.partition('/')[2] for x in archive.getnames()]
  assert 'docs/install.md' in names and 'CITATION.cff' in names
  assert not [x for x in names if x.startswith('results/')]


def test_launchers_of_the_checkout_are_thin():
  for name in ('main', 'plot_scores'):
    assert len(read('scripts', f'{name}.py').splitlines()) < 12


def test_extras_leave_out_what_a_python_lacks(wheel):
  from packaging import requirements

  lines = re.findall(r'^Requires-Dist: (.*)$', wheel[1]['METADATA'], re.M)
  parsed = [requirements.Requirement(x) for x in lines]

  def wanted(version, extra):
    environment = {'python_version': version, 'extra': extra}
    return {
      x.name for x in parsed if x.marker and x.marker.evaluate(environment)
    }

  simulators = {'pybullet', 'carla', 'dm-control'}
  for version, missing in {
    '3.10': set(),
    '3.11': set(),
    '3.12': {'pybullet'},
    '3.13': simulators,
  }.items():
    assert simulators - wanted(version, 'test') == missing
  # Then setup.sh adds dm-control without what it depends on.
  assert {'dm-env', 'dm-tree', 'lxml'} <= wanted('3.13', 'dmc')
  assert not {'dm-env', 'dm-tree'} & wanted('3.12', 'dmc')
  assert 'tensorflow' in wanted('3.11', 'gpu')
  assert not {'carla', 'visdom'} & wanted('3.11', 'all')


def test_versions_are_the_same_everywhere():
  for name in ('dm-control', 'pybullet'):
    (version,) = set(re.findall(f'{name}==([\\d.]+)', read('setup.py')))
    others = re.findall(
      f'{name}==([\\d.]+)',
      read('docs', 'install.md') + read('scripts', 'setup.sh'),
    )
    assert others and set(others) == {version}


def test_pythons_are_the_same_everywhere():
  """pip refuses others in a sentence, rather than TensorFlow as unknown."""
  from packaging import specifiers

  (words,) = re.findall("python_requires='(.*)'", read('setup.py'))
  (versions,) = re.findall(
    "^VERSIONS='(.*)'", read('scripts', 'setup.sh'), re.M
  )
  allowed = specifiers.SpecifierSet(words)
  found = {x for x in range(20) if f'3.{x}.1' in allowed}
  assert {f'3.{x}' for x in found} == {*versions.split()}
  assert f'Python 3.{min(found)} to 3.{max(found)}' in read('README.md')


def test_container():
  """It copies what exists, calls setup.sh, and does not run as root."""
  text = read('Dockerfile').replace('\\\n', ' ')
  lines = [x.split() for x in text.splitlines() if x and x[0] not in '# ']
  assert lines[0] == ['FROM', 'python:3.11-slim-bookworm']
  copied = [x for words in lines if words[0] == 'COPY' for x in words[1:-1]]
  ignored = read('.dockerignore').split()
  for name in copied:
    assert os.path.exists(os.path.join(golden.ROOT, name)), name
    assert name not in ignored
  assert {*PACKAGES, 'scripts', 'setup.py', 'README.md'} <= set(copied)
  (call,) = [x for x in lines if './scripts/setup.sh' in x]
  assert os.access(os.path.join(golden.ROOT, 'scripts', 'setup.sh'), os.X_OK)
  users = [i for i, x in enumerate(lines) if x[0] == 'USER']
  assert lines[users[-1]][1] != 'root' and lines.index(call) < users[-1]
  assert 'libegl1' in read('scripts', 'setup.sh')


@pytest.mark.slow
@pytest.mark.parametrize('kind', [0, 1], ids=['sdist', 'wheel'])
def test_installed_elsewhere(dists, tmp_path, kind):
  """In an empty environment, called from an empty folder."""
  venv, place = tmp_path / 'venv', tmp_path / 'place'
  place.mkdir()
  run(sys.executable, '-m', 'venv', str(venv))
  python = str(venv / 'bin' / 'python')
  environ = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
  options: dict = {'cwd': place, 'env': environ}
  run(
    *(python, '-m', 'pip', 'install', '-q', f'{dists[kind]}[robotics]'),
    **options,
  )
  where = run(python, '-c', 'import agents; print(agents.__file__)', **options)
  assert where.startswith(str(venv))
  for name in find_programs(read_metadata(dists[1])[1]):
    output = run(str(venv / 'bin' / name), '--help', **options)
    assert 'usage' in output.lower() or 'flags' in output
  # Exit codes carry through.
  command = [str(venv / 'bin' / 'planet-train'), '--logdir', 'x']
  command += ['--config', 'nonsense']
  result = subprocess.run(command, **options, capture_output=True, text=True)
  assert result.returncode == 2 and 'Error: ' in result.stderr
  run(
    *(str(venv / 'bin' / 'planet-train'), '--logdir', 'planet'),
    *('--config', 'debug', '--params', '{tasks: [dummy], max_steps: 50}'),
    **options,
  )
  assert os.path.exists(place / 'planet' / '00001' / 'DONE')
  run(
    *(str(venv / 'bin' / 'her-train'), '--env=FetchReach-v1'),
    *('--num_timesteps=100', '--log_path=her', '--n_cycles=1'),
    **options,
  )
  assert os.path.exists(place / 'her' / 'progress.csv')
  run(
    *(str(venv / 'bin' / 'ppo-train'), '--config=default', '--logdir=ppo'),
    *('--env=Pendulum-v1', '--steps=40', '--noenv_processes', '--params'),
    '{num_agents: 2, update_every: 2, eval_episodes: 2, max_length: 20}',
    **options,
  )
  assert glob.glob(f'{place}/ppo/*/scores.csv')
