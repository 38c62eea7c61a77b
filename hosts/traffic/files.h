/* SPDX-License-Identifier: MIT
 * The limit of a traffic program's open files.
 */
#ifndef TRAFFIC_FILES_H
#define TRAFFIC_FILES_H

#include <stdint.h>

/* Raises the limit of open files to `wanted`, and the hard limit with it if necessary. Without the privilege to raise
 * the hard limit, raises the limit to the hard limit. 0, or -EMFILE after one message if the limit is below `needed`.
 */
int allow_files(uint64_t wanted, uint64_t needed);

#endif
