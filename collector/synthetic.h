/* SPDX-License-Identifier: MIT
 * The store path alone: passes generated postcards through blocks and writer at the speed of the disk.
 */
#ifndef COLLECTOR_SYNTHETIC_H
#define COLLECTOR_SYNTHETIC_H

#include "options.h"

/* Prints rate and bytes as a JSON object. Returns the exit status. */
int synthetic_run(const struct options *options);

#endif
