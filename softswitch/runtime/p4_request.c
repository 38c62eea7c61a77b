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

bool p4_at_end(struct p4_request *request)
{
	if (!p4_next_word(request))
		return true;
	text_format(p4_error(request), "the request should end before '%.*s'\n", WORD_OF(&request->words));
	return false;
}

static const char *name_at(const void *first, size_t stride, uint32_t index)
{
	return *(const char *const *)((const char *)first + stride * index);
}

void p4_put_names(struct text *text, const void *first, size_t stride, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		text_format(text, "%s%s", i ? ", " : "", name_at(first, stride, i));
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
	text_format(text, "0x%.*s", (int)(sizeof(digits) - at), digits + at);
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

void p4_put_number_error(struct text *text, enum number result, unsigned bits)
{
	if (result == NUMBER_MALFORMED) {
		text_put(text, " is not a number: give decimal or 0x hexadecimal");
	} else {
		text_format(text, " does not fit in %u bits: at most ", bits);
		p4_put_value(text, ~(uint128_t)0 >> (128 - bits), bits);
	}
	text_put(text, "\n");
}

bool p4_number_word(struct p4_request *request, const char *label, unsigned bits, uint128_t *value)
{
	enum number result = text_read_number(request->words.word, request->words.word_bytes, bits, value);

	if (result == NUMBER_OK)
		return true;
	text_format(p4_error(request), "%s '%.*s'", label, WORD_OF(&request->words));
	p4_put_number_error(&request->reply, result, bits);
	return false;
}
