"""Examples of the documentation, run as they stand."""

import os
import re
import textwrap

from tests import golden


def run_example(text, folder, actual):
  """Run the indented code of a text, with another folder in it."""
  _, _, code = text.partition('Example:\n')
  code = textwrap.dedent(code)
  assert folder in code, (folder, code)
  exec(compile(code.replace(folder, actual), 'example', 'exec'), {})


def readme_code(mention):
  """Return the Python code of README.md that mentions something."""
  with open(os.path.join(golden.ROOT, 'README.md')) as file_:
    blocks = re.findall(r'```python\n(.*?)```', file_.read(), re.DOTALL)
  return next(x for x in blocks if mention in x)
