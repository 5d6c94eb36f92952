"""Hooks of mkdocs: pages from the whole repository, links to code, tables.

Pages link to files as on GitHub, by relative paths. `file.py#Class.method`
leads to the line of that definition. A comment
`<!-- settings module:Class NAMES -->` becomes the table of these settings, or
of all with a meaning; instead of a class, it may name a function that defines
flags. Names may end in `*`; those after a minus are left out.
"""

import ast
import base64
import fnmatch
import html
import importlib
import os
import posixpath
import re
import sys

import nbformat
from latex2mathml import converter
from mkdocs import exceptions
from mkdocs.structure import files as files_lib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(ROOT)
# Pages of the site besides those in `docs` and what they link to.
MORE = ('README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'results/README.md')
PICTURES = ('.csv', '.gif', '.mp4', '.png')
# Code, which stays, or the target of a link.
LINK = re.compile(r'(```.*?```|`[^`\n]*`)|(?<=\]\()([^)\s]+)(?=\))', re.DOTALL)
# Code, which stays, or a comment for a program.
COMMENT = re.compile(
  r'(```.*?```|`[^`\n]*`)|<!-- (?!settings ).*?-->', re.DOTALL
)
SETTINGS = re.compile(r'<!-- settings (\S+?):(\S+)(.*?)-->', re.DOTALL)
MATHS = re.compile(
  r'<(span|div) class="arithmatex">\\[([](.*?)\\[])]</\1>', re.DOTALL
)


def on_files(files, config):
  """Add the files outside of `docs` that pages link to."""
  found = ['docs/' + x.src_uri for x in files.documentation_pages()]
  found += MORE
  for path in found:
    if path.endswith(('.md', '.ipynb')):
      for link in (x[2] for x in LINK.finditer(_read(path)) if x[2]):
        target = _resolve(path, link)
        if target and target not in found:
          found.append(target)
    if not files.get_file_from_path(_place(path)):
      files.append(_make_file(path, config))
  return files


def on_page_markdown(markdown, page, config, files):
  """Point links to pages of the site, and fill in tables."""
  uri = page.file.src_uri
  origin = page.meta.get('origin') or _origin(uri)
  if origin.endswith('.py'):
    return markdown

  # At the start of a line, a comment would end the paragraph.
  markdown = COMMENT.sub(lambda x: x[1] or '', markdown)

  def translate(match):
    target = match[2] and _resolve(origin, match[2])
    if not target:
      return match[0]
    anchor = match[2].partition('#')[2]
    place = posixpath.relpath(_place(target), posixpath.dirname(uri) or '.')
    if target.endswith('.py') and anchor:
      # Mkdocs does not know the anchors of lines; see `on_page_content`.
      return f'{place}?line={find_line(target, anchor)}'
    return f'{place}#{anchor}' if anchor else place

  return SETTINGS.sub(_make_table, LINK.sub(translate, markdown))


def on_page_content(html_, page, config, files):
  """Complete links to lines; turn TeX into MathML, which browsers draw."""

  def convert(match):
    display = 'block' if match[1] == 'div' else 'inline'
    return converter.convert(html.unescape(match[2]), display=display)

  html_ = re.sub(r'\.html\?line=(\d+)"', r'.html#__codelineno-0-\1"', html_)
  return MATHS.sub(convert, html_)


def find_line(path, name):
  """Return the number of the line that defines a name.

  Args:
    path: Path of a Python file in the repository.
    name: Such as `Class.method`.

  Raises:
    PluginError: If there is no such name.
  """
  node = ast.parse(_read(path))
  for part in name.split('.'):
    found = [x for x in getattr(node, 'body', []) if part in _defined(x)]
    if not found:
      raise exceptions.PluginError(f'{path} does not define {name}.')
    node = found[0]
  return node.lineno


def _defined(node):
  targets = getattr(node, 'targets', [getattr(node, 'target', node)])
  return {getattr(x, 'id', getattr(x, 'name', None)) for x in targets}


def _read(path):
  with open(os.path.join(ROOT, path), encoding='utf-8') as file_:
    return file_.read()


def _resolve(origin, link):
  """Return the path in the repository that a link leads to, if it is a file."""
  path = posixpath.join(posixpath.dirname(origin), link.partition('#')[0])
  path = posixpath.normpath(path)
  if os.path.isdir(os.path.join(ROOT, path)):
    path = f'{path}/README.md'
  exists = os.path.isfile(os.path.join(ROOT, path))
  return path if exists and '://' not in link and link[0] != '#' else None


def _place(path):
  """Return where a file of the repository is in the site."""
  if path == 'README.md':
    return 'index.md'
  if path.endswith('.ipynb'):
    return posixpath.splitext(path.removeprefix('docs/'))[0] + '.md'
  if path.endswith(('.md', *PICTURES)):
    return path.removeprefix('docs/')
  return f'source/{path}.md'


def _origin(uri):
  """Return the file in the repository that a page was made of."""
  if uri == 'index.md':
    return 'README.md'
  inside = os.path.exists(os.path.join(ROOT, 'docs', uri))
  return f'docs/{uri}' if inside else uri


def _make_file(path, config):
  place = _place(path)
  make = files_lib.File.generated
  if path.endswith('.ipynb'):
    return make(config, place, content=_show_notebook(path))
  if not place.startswith('source/'):
    return make(config, place, abs_src_path=os.path.join(ROOT, path))
  kind = {'.py': 'python', '.sh': 'sh', '.yaml': 'yaml'}
  kind = kind.get(posixpath.splitext(path)[1], 'text')
  text = f'---\nsearch: {{exclude: true}}\norigin: {path}\n---\n# {path}\n\n'
  text += f'~~~~ {{.{kind} linenums="1"}}\n{_read(path)}~~~~\n'
  return make(config, place, content=text)


def _show_notebook(path):
  """Return a notebook as Markdown, outputs and pictures included."""
  parts = [f'---\norigin: {path}\n---']
  for cell in nbformat.read(os.path.join(ROOT, path), 4).cells:
    if cell.cell_type == 'markdown':
      parts.append(cell.source)
      continue
    parts.append(f'```python\n{cell.source}\n```')
    for output in cell.outputs:
      data = output.get('data', {})
      text = output.get('text') or data.get('text/plain', '')
      for kind in ('image/png', 'image/gif'):
        if kind in data:
          url = base64.b64encode(base64.b64decode(data[kind])).decode()
          text = ''
          parts.append(f'![output](data:{kind};base64,{url})')
      if text:
        parts.append(f'```text\n{text.rstrip()}\n```')
  return '\n\n'.join(parts)


def _make_table(match):
  declared = getattr(importlib.import_module(match[1]), match[2])
  words = match[3].split()
  excluded = [x[1:] for x in words if x[0] == '-']
  included = [x for x in words if x[0] != '-'] or ['*']
  rows = ['| name | default | meaning |', '|---|---|---|']
  for name, default, meaning in _list_settings(declared):
    if not meaning or not _fits(name, included) or _fits(name, excluded):
      continue
    default = '' if default is None else f'`{default}`'
    rows.append(f'| `{name}` | {default} | {meaning} |')
  return '\n'.join(rows)


def _list_settings(declared):
  """Yield name, default and meaning of settings or flags."""
  if isinstance(declared, type):
    for name in declared.names():
      yield name, declared.default(name), declared.meaning(name)
  else:
    flags = importlib.import_module('agents.run.flags')
    defined = flags.read(declared)
    for name in defined:
      yield name, defined[name].default, flags.meaning(defined[name])


def _fits(name, patterns):
  return any(fnmatch.fnmatchcase(name, x) for x in patterns)
