/* SPDX-License-Identifier: MIT
 * Files of a traffic program: the limit of open files, and an atomic report.
 */
#ifndef TRAFFIC_FILES_H
#define TRAFFIC_FILES_H

#include <stdint.h>
#include <stdio.h>

/* Raises the limit of open files to `wanted`, and the hard limit with it if necessary. Without the privilege to raise
 * the hard limit, raises the limit to the hard limit. 0, or -EMFILE after one message if the limit is below `needed`.
 */
int allow_files(uint64_t wanted, uint64_t needed);

/* Writes a report with print, and renames it to path. 0, or -errno after one message. */
int write_report(const char *path, void (*print)(FILE *file, const void *context), const void *context);

#endif
