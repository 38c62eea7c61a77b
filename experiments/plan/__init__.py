# SPDX-License-Identifier: MIT
"""What a run needs and does, computed beforehand: ports, processes, settings of the switch, cost."""
