/* SPDX-License-Identifier: MIT
 * A stream of bytes, read in large pieces, of which a reader sees as many bytes at once as it needs. Memory does not
 * depend on the stream's length.
 */
#ifndef CAPTURES_INPUT_H
#define CAPTURES_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INPUT_MOST_BYTES = 1 << 22 }; /* that can be seen at once */

struct input {
	int fd;		   /* -1: the stream is what `bytes` has */
	uint8_t *bytes;	   /* INPUT_MOST_BYTES of them, if they come from fd */
	size_t begin, end; /* the bytes that are read and not taken */
	uint64_t taken;	   /* bytes of the stream before `begin` */
	int error;	   /* -errno of a read that failed */
};

/* Returns 0 or -ENOMEM. */
int input_open(struct input *input, int fd);

/* The next bytes of the stream, at least `bytes` (up to INPUT_MOST_BYTES) of them; NULL if it ends before. */
const uint8_t *input_see(struct input *input, size_t bytes);

/* Goes beyond bytes, seen or not. Returns false if the stream ends before. */
bool input_take(struct input *input, uint64_t bytes);

/* Whether no byte follows. */
bool input_ended(struct input *input);

#endif
