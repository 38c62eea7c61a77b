/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * splitmix64 (Steele, Lea, Flood 2014, Fast splittable pseudorandom number generators): one word of state, any seed.
 */
#ifndef LIB_SPLITMIX64_H
#define LIB_SPLITMIX64_H

#include <stdint.h>

static inline uint64_t splitmix64(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
	value = (value ^ value >> 27) * 0x94d049bb133111eb;
	return value ^ value >> 31;
}

#endif
