/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Without libc: the functions that a compiler may call by itself, and hints for it.
 */
#ifndef SOFTSWITCH_FREESTANDING_H
#define SOFTSWITCH_FREESTANDING_H

#include <stddef.h>

#ifndef likely
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

/* The four that a freestanding compiler may call by itself: whoever embeds the core provides them. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
