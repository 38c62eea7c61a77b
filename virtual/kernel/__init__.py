# SPDX-License-Identifier: MIT
"""The virtual-time lab's kernel: fetches the source, patches, configures and builds it with our own code; caches it."""
