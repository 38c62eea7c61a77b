# SPDX-License-Identifier: MIT
"""`bufferscope experiment` whose analysis draws nothing: `python -m experiments.tests.undrawn experiment WORD...`."""

import sys

from bufferscope.__main__ import main
from experiments.run import analysis_process

if __name__ == "__main__":
    analysis_process.REPLAY = ("analysis.tests.undrawn", "replay")
    sys.exit(main())
