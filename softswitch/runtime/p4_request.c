/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See p4_request.h.
 */
#include "p4_request.h"

bool p4_next_word(struct p4_request *request)
{
	return words_next(&request->words);
}

struct text *p4_error(struct p4_request *request)
{
	text_start(&request->reply, request->reply.at, request->reply.bytes);
	text_put(&request->reply, "error ");
	return &request->reply;
}

void p4_put_word(struct p4_request *request)
{
	text_put(&request->reply, "'");
	text_put_bytes(&request->reply, request->words.word, request->words.word_bytes);
	text_put(&request->reply, "'");
}

bool p4_at_end(struct p4_request *request)
{
	if (!p4_next_word(request))
		return true;
	text_put(p4_error(request), "the request should end before ");
	p4_put_word(request);
	text_put(&request->reply, "\n");
	return false;
}

static const char *name_at(const void *first, size_t stride, uint32_t index)
{
	return *(const char *const *)((const char *)first + stride * index);
}

void p4_put_names(struct text *text, const void *first, size_t stride, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		text_put(text, i ? ", " : "");
		text_put(text, name_at(first, stride, i));
	}
	if (!count)
		text_put(text, "none");
}

void p4_put_hex(struct text *text, uint128_t value)
{
	char digits[32];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	text_put(text, "0x");
	text_put_bytes(text, digits + at, sizeof(digits) - at);
}

void p4_put_value(struct text *text, uint128_t value, unsigned bits)
{
	if (bits > 32)
		p4_put_hex(text, value);
	else
		text_put_number(text, (uint64_t)value);
}

int p4_name_index(const struct words *words, const void *first, size_t stride, uint32_t count)
{
	int index = -1, ends = 0;

	for (uint32_t i = 0; i < count; i++) {
		const char *name = name_at(first, stride, i), *end = name;

		if (words_is(words, name))
			return (int)i;
		while (*end)
			end++;
		if ((size_t)(end - name) <= words->word_bytes ||
		    end[-(ptrdiff_t)words->word_bytes - 1] != '.' ||
		    !words_is(words, end - words->word_bytes))
			continue;
		index = (int)i;
		ends++;
	}
	return ends == 1 ? index : -1;
}

enum p4_number p4_read_number(const char *at, size_t length, unsigned bits, uint128_t *value)
{
	uint128_t largest = ~(uint128_t)0 >> (128 - bits), bound = ~(uint128_t)0 / 10;
	unsigned base = 10;
	bool too_wide = false;

	if (length > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
		base = 16;
		bound = ~(uint128_t)0 / 16;
		at += 2;
		length -= 2;
	}
	if (!length)
		return P4_NUMBER_MALFORMED;
	*value = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned digit = text_digit(at[i]);

		if (digit >= base)
			return P4_NUMBER_MALFORMED;
		too_wide |= *value > bound;
		*value = *value * base + digit;
		too_wide |= *value < digit || *value > largest;
	}
	return too_wide ? P4_NUMBER_TOO_WIDE : P4_NUMBER_OK;
}

void p4_put_number_error(struct text *text, enum p4_number result, unsigned bits)
{
	if (result == P4_NUMBER_MALFORMED) {
		text_put(text, " is not a number: give decimal or 0x hexadecimal");
	} else {
		text_put(text, " does not fit in ");
		text_put_number(text, bits);
		text_put(text, " bits: at most ");
		p4_put_value(text, ~(uint128_t)0 >> (128 - bits), bits);
	}
	text_put(text, "\n");
}

bool p4_number_word(struct p4_request *request, const char *label, unsigned bits, uint128_t *value)
{
	enum p4_number result = p4_read_number(request->words.word, request->words.word_bytes, bits, value);

	if (result == P4_NUMBER_OK)
		return true;
	text_put(p4_error(request), label);
	text_put(&request->reply, " ");
	p4_put_word(request);
	p4_put_number_error(&request->reply, result, bits);
	return false;
}
