/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Parts of requests that several source files share: settings by name, and the replies `ok` and `error`.
 */
#ifndef SOFTSWITCH_REQUEST_H
#define SOFTSWITCH_REQUEST_H

#include "text.h"

/* With these bounds no product or sum of times in links.c can overflow. At the lowest rate the longest frame takes 9
 * minutes. */
#define REQUEST_MIN_RATE_BPS 1000ull
#define REQUEST_MAX_RATE_BPS 1000000000000000ull
#define REQUEST_MAX_DELAY_NS 3600000000000ull
#define REQUEST_MAX_LIMIT    ((1ull << 40) - 1) /* of a queue, in packets or bytes */

struct setting {
	const char *name;
	uint64_t min; /* 0 is always allowed */
	uint64_t max;
	uint64_t value; /* the current value, then the requested one */
};

/* Each of the next three functions writes a reply and returns its length. */
size_t request_refuse(struct text *text, const char *why);
size_t request_accept(struct text *text);
/* "error LABEL 'word': ALLOWED" */
size_t request_refuse_word(struct text *text, const char *label, const struct words *words,
			   const char *allowed);

/* The current word as a number from min to max, or 0 if that is allowed, too. Returns 0, or the length of an error reply.
 */
size_t request_number(struct text *text, const struct words *words, const char *label, uint64_t min,
		      uint64_t max, bool or_0, uint64_t *number);

/* Reads "NAME VALUE..." up to and including the word `end`, or to the end of the request if `end` is NULL or absent.
 * Returns 0, or the length of an error reply.
 */
size_t request_settings(struct text *text, struct words *words, struct setting *settings, int count,
			const char *end);

#endif
