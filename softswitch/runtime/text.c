/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See text.h.
 */
#include "text.h"
#include "freestanding.h"

static const char cut_line[] = "error reply cut: ask for less at once\n";

void text_start(struct text *text, char *buffer, size_t bytes)
{
	*text = (struct text){.at = buffer, .bytes = bytes};
}

static bool has_room(struct text *text, size_t bytes)
{
	if (text->used + bytes + sizeof(cut_line) > text->bytes)
		text->full = true;
	return !text->full;
}

void text_put_bytes(struct text *text, const char *at, size_t bytes)
{
	if (!has_room(text, bytes))
		return;
	while (bytes--) {
		char c = *at++;

		text->at[text->used++] = c >= ' ' && c <= '~' ? c : '?';
	}
}

void text_put(struct text *text, const char *string)
{
	size_t bytes = 0;

	while (string[bytes])
		bytes++;
	if (!has_room(text, bytes))
		return;
	memcpy(text->at + text->used, string, bytes);
	text->used += bytes;
}

void text_put_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = '0' + number % 10;
		number /= 10;
	} while (number);
	text_put_bytes(text, digits + at, sizeof(digits) - at);
}

void text_put_pair(struct text *text, const char *name, uint64_t number)
{
	text_put(text, name);
	text_put(text, " ");
	text_put_number(text, number);
	text_put(text, "\n");
}

void text_put_signed_pair(struct text *text, const char *name, int64_t number)
{
	text_put(text, name);
	text_put(text, number < 0 ? " -" : " ");
	text_put_number(text, number < 0 ? -(uint64_t)number : (uint64_t)number);
	text_put(text, "\n");
}

size_t text_end(struct text *text)
{
	if (text->full) {
		while (text->used && text->at[text->used - 1] != '\n')
			text->used--;
		memcpy(text->at + text->used, cut_line, sizeof(cut_line) - 1);
		text->used += sizeof(cut_line) - 1;
	}
	text->at[text->used] = 0;
	return text->used;
}

bool words_next(struct words *words)
{
	while (*words->at == ' ')
		words->at++;
	words->word = words->at;
	while (*words->at && *words->at != ' ')
		words->at++;
	words->word_bytes = (size_t)(words->at - words->word);
	return words->word_bytes;
}

bool words_is(const struct words *words, const char *string)
{
	size_t at = 0;

	while (at < words->word_bytes && string[at] && string[at] == words->word[at])
		at++;
	return at == words->word_bytes && !string[at];
}

unsigned text_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 16;
}

bool words_number(const struct words *words, uint64_t *number)
{
	const char *at = words->word;
	size_t left = words->word_bytes;
	uint64_t value = 0;
	unsigned base = 10;

	if (left > 2 && at[0] == '0' && at[1] == 'x') {
		base = 16;
		at += 2;
		left -= 2;
	}
	if (!left)
		return false;
	for (; left; left--, at++) {
		unsigned digit = text_digit(*at);

		if (digit >= base || value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*number = value;
	return true;
}

/* Converts the text "a.b.c.d" between `at` and `end` to 4 bytes. */
static bool ipv4_of(const char *at, const char *end, uint8_t *bytes)
{
	for (int part = 0; part < 4; part++) {
		int value = 0;
		int digits = 0;

		for (; at < end && *at >= '0' && *at <= '9' && digits < 3; at++, digits++)
			value = value * 10 + *at - '0';
		if (!digits || value > 255 || (part < 3 && (at == end || *at++ != '.')))
			return false;
		bytes[part] = (uint8_t)value;
	}
	return at == end;
}

/* RFC 4291, section 2.2: groups of hex digits, one run of zeros as "::", the last 32 bits in hex or as IPv4.
 */
static bool ipv6_of(const char *at, const char *end, uint8_t *bytes)
{
	int used = 0;
	int gap = -1;

	if (end - at >= 2 && at[0] == ':' && at[1] == ':') {
		gap = 0;
		at += 2;
	}
	while (at < end) {
		const char *group = at;
		unsigned int value = 0;

		if (used > 14)
			return false;
		for (; at < end && text_digit(*at) < 16 && at - group < 4; at++)
			value = value << 4 | text_digit(*at);
		if (at < end && *at == '.') {
			if (used > 12 || !ipv4_of(group, end, bytes + used))
				return false;
			used += 4;
			break;
		}
		if (at == group)
			return false;
		bytes[used++] = (uint8_t)(value >> 8);
		bytes[used++] = (uint8_t)value;
		if (at == end)
			break;
		if (*at++ != ':' || at == end)
			return false;
		if (*at == ':') {
			if (gap >= 0)
				return false;
			gap = used;
			at++;
		}
	}
	if (gap < 0)
		return used == 16;
	if (used > 14)
		return false;
	memmove(bytes + 16 - (used - gap), bytes + gap, (size_t)(used - gap));
	memset(bytes + gap, 0, (size_t)(16 - used));
	return true;
}

bool words_address(const struct words *words, uint8_t address[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const char *end = words->word + words->word_bytes;

	memset(address, 0, 16);
	if (ipv6_of(words->word, end, address))
		return true;
	memcpy(address, mapped, sizeof(mapped));
	return ipv4_of(words->word, end, address + 12);
}
