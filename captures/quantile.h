/* SPDX-License-Identifier: MIT
 * The median of a stream in constant memory: the P2 algorithm of Jain and Chlamtac, "The P2 algorithm for dynamic
 * calculation of quantiles and histograms without storing observations", CACM 28 (10), 1985. Exact up to five values.
 */
#ifndef CAPTURES_QUANTILE_H
#define CAPTURES_QUANTILE_H

#include <stdint.h>

enum { MARKERS = 5 };

struct median {
	uint32_t count;
	double height[MARKERS]; /* least, quartile, median, quartile, most */
	double place[MARKERS];	/* how many values are at most this high */
};

void median_add(struct median *median, double value);

/* 0 without values. */
double median_of(const struct median *median);

#endif
