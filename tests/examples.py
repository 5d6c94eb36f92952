"""Examples of the documentation, run as they stand."""

import textwrap


def run_example(text, folder, actual):
  """Run the indented code of a text, with another folder in it."""
  _, _, code = text.partition('Example:\n')
  code = textwrap.dedent(code)
  assert folder in code, (folder, code)
  exec(compile(code.replace(folder, actual), 'example', 'exec'), {})
