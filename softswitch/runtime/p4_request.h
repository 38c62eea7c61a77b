/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * One request that concerns a P4 program: its words, names and numbers, and its reply.
 *
 * Names are those of P4Info. As in P4Info, an alias is enough: the part after a dot, if no other name ends with it.
 */
#ifndef SOFTSWITCH_P4_REQUEST_H
#define SOFTSWITCH_P4_REQUEST_H

#include "p4_state.h"
#include "text.h"

struct p4_request {
	const struct p4_program_info *program;
	uint8_t *pipeline; /* the offsets in the descriptions count from here */
	struct words words;
	struct text reply;
};

static inline struct p4_table *p4_table_of(const struct p4_request *request, const struct p4_table_info *info)
{
	return (struct p4_table *)(request->pipeline + info->table_offset);
}

/* Reads the next word. False at the end of the request. */
bool p4_next_word(struct p4_request *request);

/* False, with an error reply, unless the request ends here. */
bool p4_at_end(struct p4_request *request);

/* Discards the reply so far and starts an error reply; the caller adds the reason and a line end. */
struct text *p4_error(struct p4_request *request);

/* Writes "NAME_A, NAME_B" from `count` descriptions of `stride` bytes, each of which starts with its name. */
void p4_put_names(struct text *text, const void *first, size_t stride, uint32_t count);

/* Writes values of up to 32 bits in decimal, wider values (addresses) in hexadecimal. */
void p4_put_value(struct text *text, uint128_t value, unsigned bits);
void p4_put_hex(struct text *text, uint128_t value);

/* The index of the description with the current word as its name or alias; -1: none, or more than one. */
int p4_name_index(const struct words *words, const void *first, size_t stride, uint32_t count);

/* Writes why a number was refused, and a line end. The caller has written the number's text. */
void p4_put_number_error(struct text *text, enum number result, unsigned bits);

/* Reads the current word as a number of at most `bits` bits. False, with an error reply that starts with `label`: the
 * word is no such number.
 */
bool p4_number_word(struct p4_request *request, const char *label, unsigned bits, uint128_t *value);

/* p4_table_control.c: answers a request whose first word is `table`. The next word to read is the second. */
void p4_control_table(struct p4_request *request);

#endif
