"""The server beside a run."""

from tests import processes

# Ends as after a second Ctrl-C, with no time to close anything.
PROGRAM = """
import os, sys, urllib.request
from agents.pipeline import session
addresses = [session.start_tensorboard(sys.argv[1]) for _ in range(2)]
for address in addresses:
  page = urllib.request.urlopen(address, timeout=20).read()
  print('TensorBoard' in page.decode(), flush=True)
print(len(set(addresses)), flush=True)
os._exit(0)
"""


def test_servers(tmp_path):
  """They show their page, also where the usual port is taken."""
  output = processes.run_python('-c', PROGRAM, str(tmp_path))
  assert output.split() == ['True', 'True', '2']
