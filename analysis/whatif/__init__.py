# SPDX-License-Identifier: MIT
"""What-ifs: `make replay RUN=... BUF=...` puts a run's arrivals through another queue. queue.py takes the arrivals from
the run's postcards and runs the same P4 program and switch core with another buffer, policy or rate; results.py writes
the result beside the run; figure.py draws it.

A replay of arrivals cannot know how senders would have reacted: CAVEAT accompanies every result.
"""

CAVEAT = (
    "Senders would have reacted: a what-if puts the run's own arrivals through another queue. Other drops, marks and "
    "delays would have changed what TCP sends. Only a run with this queue measures that."
)
