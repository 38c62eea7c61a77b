/* SPDX-License-Identifier: MIT
 * The account of a run as JSON: datagrams received, stored, and lost at each place.
 */
#ifndef COLLECTOR_SUMMARY_H
#define COLLECTOR_SUMMARY_H

#include "collect.h"

/* Call after collector_close. The file is complete or absent (rename). If it cannot be written, the summary goes to
 * stderr.
 */
int summary_write(const char *path, const struct collector *collector);

#endif
