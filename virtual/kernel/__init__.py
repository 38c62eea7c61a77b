# SPDX-License-Identifier: MIT
"""The virtual-time lab's kernel: source fetched by name, patched, configured, built with our own code in it, cached."""
