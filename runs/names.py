# SPDX-License-Identifier: MIT
"""Names in a results directory: `results/<UTC>-<name>/rep-<k>/`, `results/<sweep>/runs/<job>/rep-1/`."""

from __future__ import annotations

import re

SWEEP_RUNS = "runs"
REPETITION_NAME = re.compile(r"rep-([0-9]{1,9})")
REPETITION = "rep-1"  # the only repetition of a sweep's job
JOB_NAME = re.compile(r".*-r([0-9]{1,9})")  # ends with the number of the repetition
EARLIER_ATTEMPTS = "attempt-*"  # beside rep-1 in a job's directory
LATEST = "latest"  # a link to the newest complete run

# Raw files of a repetition: the input of the analysis.
SPEC_FILE = "spec.yaml"
POSTCARDS_FILE = "postcards.bsp"
TCP_FILE = "tcp.bst"
GOODPUT_FILE = "goodput.bsg"
FLOWS_FILE = "flows.bsf"  # only in runs with finite flows
CAPTURES = ("into.pcap", "out_of.pcap")  # frames into and out of a switch whose program makes no postcards
TAPS = ("before.pcap", "after.pcap")  # the headers on both sides of the queue, in runs with TAPS=1
RATE_DIRECTORY = "rate"  # with the trace of a rate that changes
PLACE = "place"  # in environment.json: the repetition's path below the results directory when it was recorded
ENVIRONMENT = "environment.json"  # written last of the raw files: it marks the repetition as recorded

# Derived files of a repetition.
SUMMARY = "summary.json"  # moved into place last by the analysis: it marks the repetition as analysed
PAGE = "report.html"  # a sweep has one, too

RECORD = "digests.json"  # the digests of raw and derived files (record.py)
ABORTED = "ABORTED"
THINNED = "THINNED"

NOTE = "NOTE"  # of a run or a sweep, in its directory (note.py)

# In a sweep.
PLAN = "plan.json"
# In a results directory.
INDEX = "index.parquet"
