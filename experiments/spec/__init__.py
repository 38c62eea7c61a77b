# SPDX-License-Identifier: MIT
"""From words and files to an experiment: the keys, and the rules between them."""
