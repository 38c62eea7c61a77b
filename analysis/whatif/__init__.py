# SPDX-License-Identifier: MIT
"""What-ifs: `make replay RUN=... BUF=...` puts a run's arrivals through another queue. queue.py takes the arrivals from
the run's postcards and runs the same P4 program and switch core with another buffer, policy or rate; results.py writes
the result beside the run; figure.py draws it.

A replay of arrivals cannot know how senders would have reacted: CAVEAT accompanies every result.
"""

CAVEAT = (
    "Senders would have reacted: these are the run's own arrivals, put through another queue. With other drops, marks "
    "and delays TCP would have sent something else; only a run of its own shows what."
)
