/* SPDX-License-Identifier: MIT
 * The account of a run as JSON: what came, what was stored, what was lost and where.
 */
#ifndef COLLECTOR_SUMMARY_H
#define COLLECTOR_SUMMARY_H

#include "collect.h"

/* Before the run: path (NULL: stdout) must not exist and its directory must be writable. 0 or -errno after
 * one line. */
int summary_check(const char *path);

/* After collector_close. The file appears whole, by rename, or not at all: then the account goes to stderr.
 */
int summary_write(const char *path, const struct collector *collector);

#endif
