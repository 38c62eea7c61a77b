# SPDX-License-Identifier: MIT
"""What if the buffer had been another one? `make replay RUN=... BUF=...` puts a run's arrivals, as its postcards have
them, through the same P4 program in the same switch core, with another buffer, policy or rate: queue.py. What comes of
it is written beside the run by results.py and drawn by figure.py.

Senders would have reacted, which no replay of arrivals knows: CAVEAT stands wherever a result of this does.
"""

CAVEAT = (
    "Senders would have reacted: these are the run's own arrivals, put through another queue. With other drops, marks "
    "and delays TCP would have sent something else; only a run of its own shows what."
)
