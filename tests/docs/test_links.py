"""Links between the pages of the documentation."""

import glob
import os
import re

from tests import golden


def anchors(path):
  """Names of the headings of a page, as GitHub makes them."""
  with open(path) as file_:
    titles = re.findall(r'^#+ (.*)$', file_.read(), re.MULTILINE)
  return {re.sub(r'[^\w -]', '', x.lower()).replace(' ', '-') for x in titles}


def test_links_lead_somewhere():
  pages = glob.glob(
    os.path.join(golden.ROOT, 'docs', '**', '*.md'), recursive=True
  )
  pages.append(os.path.join(golden.ROOT, 'README.md'))
  count = 0
  for page in pages:
    with open(page) as file_:
      text = re.sub(r'`[^`]*`', '', file_.read())
    for link in re.findall(r'\]\(([^)\s]+)\)', text):
      if link.startswith('http'):
        continue
      name, _, anchor = link.partition('#')
      target = os.path.join(os.path.dirname(page), name) if name else page
      assert os.path.exists(target), (page, link)
      # Names in code are checked with the site.
      if anchor and not name.endswith('.py'):
        assert anchor in anchors(target), (page, link)
      count += 1
  assert count > 20


def test_pages_are_short():
  pages = glob.glob(
    os.path.join(golden.ROOT, 'docs', '**', '*.md'), recursive=True
  )
  for page in pages:
    with open(page) as file_:
      assert len(file_.readlines()) <= 200, page
