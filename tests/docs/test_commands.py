"""Commands and Python code of the documentation, run with few steps."""

import glob
import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from planet.training import precision
from tests import golden

# Programs that do nothing here, and why.
SKIPPED = {
  'docker': 'needs a daemon and a network',
  'git': 'needs a network',
  'mkdocs': 'tests/docs/test_site.py',
  'pip': 'needs a network',
  'planet-carla-smoke': 'needs a server; tests/planet/envs/carla/server',
  'python3': 'creates a virtual environment, for pip',
  'scontrol': 'belongs to Slurm',
  'scripts/setup.sh': 'needs a network; tests/test_setup_script.py',
  'scripts/test.sh': 'this is the suite',
  'sudo': 'changes the system',
  'tensorboard': 'never ends',
}
# These start the rest of their line.
LAUNCHERS = 'mpirun', 'srun'
# Languages of blocks that hold no commands.
DATA = 'bibtex', 'text', 'yaml'
# Pages whose commands are run elsewhere.
ELSEWHERE = {
  'CONTRIBUTING.md': 'this is the suite; tests/scripts/test_reproduce.py',
  'docs/originals.md': 'tests/scripts/test_compare.py',
  'results/README.md': 'tests/scripts/test_reproduce.py',
}
BLOCK = re.compile(r'^( *)```(.*?)\n(.*?)^ *```$', re.DOTALL | re.MULTILINE)


def read_blocks():
  """Return a dict from pages to pairs of language and code."""
  pages = glob.glob('docs/**/*.md', root_dir=golden.ROOT, recursive=True)
  pages += glob.glob('results/**/*.md', root_dir=golden.ROOT, recursive=True)
  blocks = {}
  for page in [*sorted(pages), 'README.md', 'CONTRIBUTING.md']:
    with open(os.path.join(golden.ROOT, page), encoding='utf-8') as file_:
      found = BLOCK.findall(file_.read())
    if found:
      blocks[page] = [(lang, textwrap.dedent(code)) for _, lang, code in found]
  return blocks


BLOCKS = read_blocks()


@pytest.fixture
def folder(tmp_path):
  """Copy of what commands find in a checkout, with programs in `bin`."""
  for name in ('.venv/bin', 'bin', 'scripts'):
    (tmp_path / name).mkdir(parents=True)
  (tmp_path / '.venv/bin/activate').touch()
  shutil.copytree(f'{golden.ROOT}/docs/examples', tmp_path / 'docs/examples')
  os.symlink(f'{golden.ROOT}/results', tmp_path / 'results')

  def write(name, line):
    path = tmp_path / (name if '/' in name else f'bin/{name}')
    path.write_text(f'#!/bin/bash\n{line}\n')
    path.chmod(0o755)

  small = f'exec {sys.executable} -m tests.docs.small'
  for program in list_programs():
    write(program, f'{small} {program} "$@"')
  for name in SKIPPED:
    write(name, 'exit 0')
  for name in LAUNCHERS:
    write(name, 'while [[ $1 != *-train ]]; do shift; done; exec "$@"')
  write('python', f'exec {sys.executable} "$@"')
  return tmp_path


def list_programs():
  from importlib import metadata

  scripts = metadata.entry_points(group='console_scripts')
  return {x.name for x in scripts if x.dist.name == 'reference-agents'}


def run(folder, *command):
  result = subprocess.run(
    command,
    cwd=folder,
    env={
      **os.environ,
      'HOME': str(folder),
      'PATH': f'{folder}/bin:{os.environ["PATH"]}',
      'PYTHONPATH': golden.ROOT,
      'SLURM_ARRAY_TASK_ID': '0',
    },
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert result.returncode == 0, result.stdout


@pytest.mark.slow
@pytest.mark.parametrize('page', [x for x in BLOCKS if x not in ELSEWHERE])
def test_page(page, folder):
  """What it says, one after the other, as somebody who follows it does."""
  lines = []
  for index, (lang, code) in enumerate(BLOCKS[page]):
    if lang == 'python':
      (folder / f'{index}.py').write_text(code)
      code = f'python -m tests.docs.small {folder}/{index}.py'
    lines.append(code if lang in ('sh', 'python') else '')
  # That needs a server of visdom, which tests of the pipeline have.
  code = re.sub(r'.*--visdom\n', '', '\n'.join(lines))
  if 'bfloat16' in code and 'amx_bf16' not in precision.processor_flags():
    pytest.skip('bfloat16 needs a CPU with AMX')
  run(folder, 'bash', '-exc', code)


def test_all_blocks_are_run_or_named():
  """Their language says so, also on pages that come later."""
  for page, blocks in BLOCKS.items():
    assert {lang for lang, _ in blocks} <= {'sh', 'python', *DATA}, page
  assert set(ELSEWHERE) <= set(BLOCKS)


def test_all_commands_are_known():
  """So that none is skipped because its name is wrong."""
  known = {*SKIPPED, *LAUNCHERS, *list_programs()}
  known |= {'.', 'cd', 'if', 'fi', 'python'}
  for page in set(BLOCKS) - set(ELSEWHERE):
    for lang, code in BLOCKS[page]:
      # Without what is quoted, which may have several lines.
      bare = re.sub(r"'[^']*'", '', code.replace('\\\n', ' '))
      lines = bare.splitlines() if lang == 'sh' else []
      for line in lines:
        for command in line.partition('#')[0].split('&&'):
          words = command.split()
          assert not words or words[0].removeprefix('./') in known, (page, line)
