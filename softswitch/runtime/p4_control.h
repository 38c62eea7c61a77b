/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests of the control plane that concern a P4 program (docs/control-protocol.md), answered from the descriptions
 * that the translator writes. Every request is read and checked whole before anything is changed.
 *
 * Names are those of P4Info; as there, the end of a name will do when only one ends so (its alias).
 */
#ifndef SOFTSWITCH_P4_CONTROL_H
#define SOFTSWITCH_P4_CONTROL_H

#include "p4_state.h"
#include "text.h"

/* One request on its way to a reply. */
struct p4_request {
	const struct p4_program_info *program;
	uint8_t *pipeline; /* what the offsets in the descriptions count from */
	struct words words;
	struct text reply;
};

/* Answers `request` as pipeline_control does; pipeline: the program's struct pipeline. */
size_t p4_control(const struct p4_program_info *program, void *pipeline, const char *request, char *reply,
		  size_t reply_bytes);

/* table list, set, delete, default, dump: what follows the word `table`. */
void p4_control_table(struct p4_request *request);

static inline struct p4_table *p4_table_of(const struct p4_request *request, const struct p4_table_info *info)
{
	return (struct p4_table *)(request->pipeline + info->table_offset);
}

/* Reads on. False at the end of the request. */
bool p4_next_word(struct p4_request *request);

/* False, with an error reply, unless the request ends here. */
bool p4_at_end(struct p4_request *request);

/* Starts an error reply, whatever was written before; the caller adds what it knows, and a line end. */
struct text *p4_error(struct p4_request *request);

/* The word read last, in quotes. */
void p4_put_word(struct p4_request *request);

/* "NAME_A, NAME_B" of `count` descriptions of `stride` bytes that start with their name. */
void p4_put_names(struct text *text, const void *first, size_t stride, uint32_t count);

/* Decimal for numbers, hexadecimal for what is wider than 32 bits: addresses. */
void p4_put_value(struct text *text, uint128_t value, unsigned bits);
void p4_put_hex(struct text *text, uint128_t value);

/* The index of the description that the word names, entirely or by its end; -1: none, or more than one. */
int p4_name_index(const struct words *words, const void *first, size_t stride, uint32_t count);

/* A number of at most `bits` bits from `length` characters, decimal or 0x hex. */
enum p4_number {
	P4_NUMBER_OK,
	P4_NUMBER_MALFORMED,
	P4_NUMBER_TOO_WIDE,
};
enum p4_number p4_read_number(const char *at, size_t length, unsigned bits, uint128_t *value);

/* The word read last as a number; an error reply that says `what` it is for, and false, when it is none. */
bool p4_number_word(struct p4_request *request, const char *what, unsigned bits, uint128_t *value);

#endif
