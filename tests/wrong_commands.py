"""Runs wrong command lines one after the other, and tells how they end.

A program of its own, in a folder of its own: reads a list of lists of words
from standard input, each of a module and its arguments, and prints a list.
"""

import contextlib
import io
import json
import os
import runpy
import sys


def run(module, *args):
  """Run a program here; return the way it ends, plain data."""
  sys.argv = [module, *args]
  out, said = io.StringIO(), io.StringIO()
  before = 'tensorflow' in sys.modules
  with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
    try:
      runpy.run_module(module, run_name='__main__')
      code = None
    except SystemExit as end:
      code = end.code
    except BaseException as error:
      code = repr(error)
  return {
    'code': code,
    'said': said.getvalue(),
    'printed': out.getvalue(),
    'tensorflow': not before and 'tensorflow' in sys.modules,
    'files': sorted(os.listdir()),
  }


if __name__ == '__main__':
  print(json.dumps([run(*x) for x in json.load(sys.stdin)]))
