# SPDX-License-Identifier: MIT
"""Names in a results directory: `results/<UTC>-<name>/rep-<k>/`, `results/<sweep>/runs/<job>/rep-1/`."""

from __future__ import annotations

import re

SWEEP_RUNS = "runs"
REPETITION_NAME = re.compile(r"rep-([0-9]{1,9})")
REPETITION = "rep-1"  # of a sweep's job, which has one
JOB_NAME = re.compile(r".*-r([0-9]{1,9})")  # ends with the number of the repetition
EARLIER_ATTEMPTS = "attempt-*"  # beside rep-1 in a job's directory
LATEST = "latest"  # a link to the newest complete run

# In a repetition, raw: the analysis reads them.
SPEC_FILE = "spec.yaml"
POSTCARDS_FILE = "postcards.bsp"
TCP_FILE = "tcp.bst"
GOODPUT_FILE = "goodput.bsg"
FLOWS_FILE = "flows.bsf"  # of runs with finite flows
ENVIRONMENT = "environment.json"  # the last of the raw files: with it the repetition is recorded

# In a repetition, derived.
SUMMARY = "summary.json"  # the last of the derived files
PAGE = "report.html"  # of a sweep, too
MEASURES = "measures.json"  # what papers' figures take from tables

RECORD = "digests.json"
ABORTED = "ABORTED"
THINNED = "THINNED"

# In a sweep.
PLAN = "plan.json"
# In a results directory.
INDEX = "index.parquet"
