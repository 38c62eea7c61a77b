// SPDX-License-Identifier: MIT
#include "quantile.h"

#include <string.h>

/* Sorted insertion of the first five. */
static void insert(struct median *median, double value)
{
	uint32_t at = median->count;

	for (; at && median->height[at - 1] > value; at--)
		median->height[at] = median->height[at - 1];
	median->height[at] = value;
	median->place[median->count] = median->count;
	median->count++;
}

/* Moves a marker one place up or down: along the parabola through its neighbours, else along the line. */
static void move(struct median *median, int marker, int step)
{
	double *q = median->height + marker, *n = median->place + marker;
	double above = (q[1] - q[0]) / (n[1] - n[0]), below = (q[0] - q[-1]) / (n[0] - n[-1]);
	double height =
		q[0] + step / (n[1] - n[-1]) * ((n[0] - n[-1] + step) * above + (n[1] - n[0] - step) * below);

	if (height <= q[-1] || height >= q[1])
		height = q[0] + step * (step > 0 ? above : below);
	q[0] = height;
	n[0] += step;
}

void median_add(struct median *median, double value)
{
	int cell = 0;
	double apart;

	if (median->count < MARKERS) {
		insert(median, value);
		return;
	}
	if (value < median->height[0])
		median->height[0] = value;
	if (value > median->height[MARKERS - 1])
		median->height[MARKERS - 1] = value;
	while (cell < MARKERS - 2 && value >= median->height[cell + 1])
		cell++;
	for (int marker = cell + 1; marker < MARKERS; marker++)
		median->place[marker]++;
	for (int marker = 1; marker < MARKERS - 1; marker++) {
		apart = median->count * marker / 4.0 - median->place[marker];
		if (apart >= 1 && median->place[marker + 1] - median->place[marker] > 1)
			move(median, marker, 1);
		else if (apart <= -1 && median->place[marker - 1] - median->place[marker] < -1)
			move(median, marker, -1);
	}
	median->count++;
}

double median_of(const struct median *median)
{
	if (median->count >= MARKERS)
		return median->height[2];
	return median->count ? median->height[(median->count - 1) / 2] : 0;
}
