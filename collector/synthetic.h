/* SPDX-License-Identifier: MIT
 * The store path alone: generated postcards through the same blocks and writer, as fast as the disk takes
 * them.
 */
#ifndef COLLECTOR_SYNTHETIC_H
#define COLLECTOR_SYNTHETIC_H

#include "options.h"

/* Prints rate and bytes as one JSON object. Returns the exit status. */
int synthetic_run(const struct options *options);

#endif
