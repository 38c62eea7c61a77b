/* SPDX-License-Identifier: MIT
 * Files of a traffic program: how many it may have open, and a report that is whole or not there.
 */
#ifndef TRAFFIC_FILES_H
#define TRAFFIC_FILES_H

#include <stdint.h>
#include <stdio.h>

/* Lets this process open as many files as are wanted, or as the hard limit allows. 0, or -EMFILE after one line if
 * that is less than needed.
 */
int allow_files(uint64_t wanted, uint64_t needed);

/* Has print write the report, and puts it at path. 0, or -errno after one line. */
int write_report(const char *path, void (*print)(FILE *file, const void *context), const void *context);

#endif
