"""Episodes of several processes that meet now and then only."""

import numpy as np
import pytest

from agents.ppo import meeting


def count_one_by_one(ends, wanted):
  """Updates of processes that tell each other of every episode at once.

  Args:
    ends: Steps at which episodes end [processes, episodes].
    wanted: Episodes of an update.

  Returns:
    List of sets of episodes, as tuples of a process and a number.
  """
  updates, waiting = [], []
  for step in range(ends.max() + 1):
    for process, rows in enumerate(ends):
      new = [(process, i) for i in np.flatnonzero(rows == step)]
      waiting += new[: wanted - len(waiting)]
    if len(waiting) == wanted:
      updates.append(set(waiting))
      waiting = []
  return updates


def count_at_meetings(ends, wanted, every):
  """The same by `divide`, every few steps."""
  updates = []
  waiting = [[] for _ in ends]
  for first in range(0, ends.max() + 1, every):
    now = np.full([len(ends), 50], -1)
    for process, rows in enumerate(ends):
      new = np.flatnonzero((rows >= first) & (rows < first + every))
      waiting[process] += sorted(new, key=lambda i: rows[i])
      now[process, : len(waiting[process])] = rows[waiting[process]]
    shares = meeting.divide(now, wanted)
    if shares[:, 0].any():
      updates.append(
        {
          (process, i)
          for process, (used, _, _) in enumerate(shares)
          for i in waiting[process][:used]
        }
      )
    for process, (used, dropped, kept) in enumerate(shares):
      own = waiting[process][used + dropped :]
      waiting[process] = own[:kept]
  return updates


@pytest.mark.parametrize('every', [1, 3, 8])
@pytest.mark.parametrize('processes', [1, 2, 3])
def test_updates_take_the_same_episodes_however_often_processes_meet(
  processes, every
):
  random = np.random.default_rng(10 * processes + every)
  ends = np.sort(random.integers(0, 300, [processes, 100]), 1)
  expected = count_one_by_one(ends, 20)
  assert len(expected) > 3
  assert count_at_meetings(ends, 20, every) == expected


def test_no_more_wait_than_fit():
  """One update at a meeting, and less than what the next one needs is kept."""
  ends = np.array([[0, 1, 2, 5, 6, -1], [1, 3, 4, 7, -1, -1]])
  # In order: 0 | 1 1 | 2, 3, 4, 5, 6, 7; of the two the second is dropped.
  assert meeting.divide(ends, 2).tolist() == [[2, 0, 1], [0, 1, 0]]
  assert meeting.divide(ends, 4).tolist() == [[3, 0, 1], [1, 0, 2]]
  assert meeting.divide(ends, 10).tolist() == [[0, 0, 5], [0, 0, 4]]
  assert not meeting.divide(ends[:, :0], 1).any()
