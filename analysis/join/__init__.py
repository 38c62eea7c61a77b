# SPDX-License-Identifier: MIT
"""Joins the queue's packets with the sender's trace."""
