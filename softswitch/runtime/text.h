/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Reads requests word by word and writes replies line by line, without libc. A reply that does not fit is cut to whole
 * lines. An error line at its end tells the client that the reply is incomplete.
 */
#ifndef SOFTSWITCH_TEXT_H
#define SOFTSWITCH_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *at;
	size_t bytes; /* of the buffer, including the NUL at the end */
	size_t used;
	bool full;
};

struct words {
	const char *at;	  /* the rest, not read yet */
	const char *word; /* the current word: the one that words_next read last; not NUL-terminated */
	size_t word_bytes;
};

void text_start(struct text *text, char *buffer, size_t bytes); /* bytes: at least 64 */
void text_put(struct text *text, const char *string);
/* printf with %s, %u, %llu and %.*s. The last is for texts of others: '?' replaces characters that cannot be printed. */
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *format, ...);
void text_put_number(struct text *text, uint64_t number);
void text_put_pair(struct text *text, const char *name, uint64_t number); /* a line "NAME NUMBER" */
void text_put_port(struct text *text, uint32_t port, const char *name,
		   uint64_t number); /* a line "port.PORT.NAME NUMBER" */
void text_put_signed_pair(struct text *text, const char *name, int64_t number);
size_t text_end(struct text *text);

enum number {
	NUMBER_OK,
	NUMBER_MALFORMED,
	NUMBER_TOO_WIDE,
};
/* Reads a number of at most `bits` bits from `length` characters, decimal or 0x hex. *value is valid only with OK. */
enum number text_read_number(const char *at, size_t length, unsigned bits, unsigned __int128 *value);

/* The arguments of text_format's %.*s for the current word. */
#define WORD_OF(words) (int)(words)->word_bytes, (words)->word

bool words_next(struct words *words); /* false: there is no more; the current word is then empty */
bool words_is(const struct words *words, const char *string);
bool words_number(const struct words *words, uint64_t *number); /* decimal or 0x hex, the whole word */
/* An IPv4 or IPv6 address as 16 bytes, IPv4 as ::ffff:a.b.c.d. */
bool words_address(const struct words *words, uint8_t address[16]);

#endif
