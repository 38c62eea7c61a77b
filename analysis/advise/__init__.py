# SPDX-License-Identifier: MIT
"""`make advise`: what buffer each rule of the literature asks for on one link, whether its assumptions hold there, and
what our own runs say of it.

parameters: what may be asked. link: the link asked about. rules: one row a rule, from analysis/theory/. memory: what
kind of memory holds so much. evidence: our runs. judge: runs held against rows. show: table and JSON. command: the
order of all this.
"""
