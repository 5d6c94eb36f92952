"""Scalars as JSON lines beside the TensorBoard events."""

import json
import math
import os
import time


class MetricsWriter:
  """Append one JSON object per line to `metrics.jsonl`.

  Every line holds `phase`, `step` (that of the TensorBoard event),
  `global_step`, `wall_time`, and the scalars by their tags. Numbers that are
  not finite are left out. Lines after a restart follow those before it; steps
  that are repeated because the program was killed appear twice, and the later
  line counts.

  Args:
    logdir: Folder of the file; created if needed.
  """

  def __init__(self, logdir):
    os.makedirs(logdir, exist_ok=True)
    self._filename = os.path.join(logdir, 'metrics.jsonl')
    self._mend()

  def write(self, phase, step, global_step, scalars):
    """Append a line.

    Args:
      phase: Name of the phase.
      step: Step of the summary.
      global_step: Step over all phases.
      scalars: Dict from tag to number.
    """
    line = {
      'phase': phase,
      'step': int(step),
      'global_step': int(global_step),
      'wall_time': round(time.time(), 3),
    }
    line.update({k: float(v) for k, v in scalars.items() if math.isfinite(v)})
    with open(self._filename, 'a') as file_:
      file_.write(json.dumps(line) + '\n')

  def write_summary(self, phase, step, global_step, summary):
    """Append the scalars of a serialised TensorFlow summary, if any."""
    scalars = read_scalars(summary)
    if scalars:
      self.write(phase, step, global_step, scalars)

  def _mend(self):
    """End an incomplete last line, left by a process that was killed."""
    if not os.path.exists(self._filename):
      return
    with open(self._filename, 'rb+') as file_:
      content = file_.read()
      if content and not content.endswith(b'\n'):
        file_.truncate(content.rfind(b'\n') + 1)


def read_scalars(summary):
  """Dict from tag to number of a serialised TensorFlow summary."""
  from agents.tools.tf1 import tf

  proto = tf.Summary.FromString(summary)
  return {
    x.tag: x.simple_value for x in proto.value if x.HasField('simple_value')
  }
