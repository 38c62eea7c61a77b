/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Freestanding C: the library functions that the compiler calls, and branch hints.
 */
#ifndef SOFTSWITCH_FREESTANDING_H
#define SOFTSWITCH_FREESTANDING_H

#include <stddef.h>

#ifndef likely
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

/* A compiler may call these four on its own, so every program with the core must have them. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
