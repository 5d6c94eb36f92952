"""The documentation as a site, built without network."""

import os
import re
import subprocess
import sys

import pytest

from agents import configs
from baselines_her import settings
from planet.envs.carla import settings as driving
from planet.scripts import parameters
from tests import golden

pytestmark = pytest.mark.needs('mkdocs', 'material', 'mkdocstrings')


@pytest.fixture(scope='module')
def site(tmp_path_factory):
  """Folder of the site; any warning is an error."""
  path = str(tmp_path_factory.mktemp('site'))
  result = subprocess.run(
    [sys.executable, '-m', 'mkdocs', 'build', '--strict', '-d', path],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
  )
  assert result.returncode == 0, result.stdout + result.stderr
  return path


def read(*names):
  with open(os.path.join(*names), encoding='utf-8') as file_:
    return file_.read()


def list_pages(site):
  for folder, _, names in os.walk(site):
    yield from (os.path.join(folder, x) for x in names if x.endswith('.html'))


def test_pages_need_no_network(site):
  """Neither scripts, styles, fonts nor pictures come from elsewhere."""
  for page in list_pages(site):
    tags = re.findall(r'<(?:script|link|img)\b[^>]*>', read(page))
    loaded = [x for x in tags if re.search(r'(?:src|href)="?(?:https?:)?//', x)]
    assert not loaded, (page, loaded)


def test_links_to_code_lead_to_the_line(site):
  """All of them: the line that is linked defines the name."""
  count = 0
  for page in list_pages(os.path.join(site, 'paper')):
    links = re.findall(
      r'href="([^"]*)\.html#__codelineno-0-(\d+)"><code>([\w.]+)', read(page)
    )
    for path, line, name in links:
      source = os.path.normpath(os.path.join(os.path.dirname(page), path))
      source = os.path.relpath(source, os.path.join(site, 'source'))
      text = read(golden.ROOT, source).splitlines()[int(line) - 1]
      assert re.search(rf'\b{name.split(".")[-1]}\b', text), (page, name, text)
      anchor = f'id="__codelineno-0-{line}"'
      assert anchor in read(site, 'source', f'{source}.html')
      count += 1
  assert count > 50


def test_equations_are_drawn_by_the_browser(site):
  page = read(site, 'paper', 'rssm.html')
  assert page.count('<math') > 10 and 'arithmatex' not in page


def test_comments_break_no_paragraph(site):
  """Numbers that are kept up to date stand within sentences."""
  page = read(site, 'index.html')
  (paragraph,) = re.findall(r'<p>On Debian or Ubuntu.*?</p>', page, re.DOTALL)
  assert 'three other runs' in paragraph and 'random actions: 274' in paragraph
  assert '<!-- planet' not in page
  # As text, they stay.
  assert '&lt;!-- ROW --&gt;' in read(site, 'CONTRIBUTING.html')


def test_signatures_are_wrapped(site):
  """One argument a line, where they are many."""
  page = read(site, 'api', 'agents.html')
  (signature,) = re.findall(
    r'<code>(?:(?!</code>).)*?total_env_steps.*?</code>', page, re.DOTALL
  )[:1]
  lines = re.sub('<.*?>', '', signature).strip().splitlines()
  assert len(lines) > 8 and max(map(len, lines)) <= 72


def test_tables_have_all_parameters(site):
  """Those of driving are on the page of driving."""
  pages = {x: read(site, f'{x}.html') for x in ('carla', 'parameters')}
  for name in parameters.Parameters.names():
    if not name.endswith('_loss_scale'):
      assert f'<td><code>{name}</code></td>' in pages['parameters'], name
  for name in driving.Settings.names():
    assert f'<td><code>{name}</code></td>' in pages['carla'], name
  for declared in (configs.Config, settings.Settings):
    for name in filter(declared.meaning, declared.names()):
      assert f'<td><code>{name}</code></td>' in pages['parameters'], name
