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

static void put_printable(struct text *text, const char *at, size_t bytes)
{
	if (!has_room(text, bytes))
		return;
	while (bytes--) {
		char c = *at++;

		text->at[text->used++] = c >= ' ' && c <= '~' ? c : '?';
	}
}

static void put_bytes(struct text *text, const char *at, size_t bytes)
{
	if (!has_room(text, bytes))
		return;
	memcpy(text->at + text->used, at, bytes);
	text->used += bytes;
}

/* The number of bytes of string before the first `end`, or before its NUL. */
static size_t length_until(const char *string, char end)
{
	size_t bytes = 0;

	while (string[bytes] && string[bytes] != end)
		bytes++;
	return bytes;
}

void text_put(struct text *text, const char *string)
{
	put_bytes(text, string, length_until(string, 0));
}

/* The compiler has checked the format against the arguments. */
void text_format(struct text *text, const char *format, ...)
{
	va_list arguments;
	size_t bytes;
	int length;

	va_start(arguments, format);
	for (;; format++) {
		bytes = length_until(format, '%');
		put_bytes(text, format, bytes);
		format += bytes;
		if (!*format)
			break;
		switch (*++format) {
		case 's':
			text_put(text, va_arg(arguments, const char *));
			break;
		case 'u':
			text_put_number(text, va_arg(arguments, unsigned int));
			break;
		case 'l':
			text_put_number(text, va_arg(arguments, unsigned long long));
			format += 2;
			break;
		case '.':
			length = va_arg(arguments, int);
			put_printable(text, va_arg(arguments, const char *), (size_t)length);
			format += 2;
			break;
		}
	}
	va_end(arguments);
}

void text_put_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = '0' + number % 10;
		number /= 10;
	} while (number);
	put_bytes(text, digits + at, sizeof(digits) - at);
}

void text_put_pair(struct text *text, const char *name, uint64_t number)
{
	text_format(text, "%s %llu\n", name, (unsigned long long)number);
}

void text_put_port(struct text *text, uint32_t port, const char *name, uint64_t number)
{
	text_format(text, "port.%u.%s %llu\n", port, name, (unsigned long long)number);
}

void text_put_signed_pair(struct text *text, const char *name, int64_t number)
{
	text_format(text, "%s %s%llu\n", name, number < 0 ? "-" : "",
		    number < 0 ? -(unsigned long long)number : (unsigned long long)number);
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

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 16;
}

enum number text_read_number(const char *at, size_t length, unsigned bits, unsigned __int128 *value)
{
	unsigned __int128 largest = ~(unsigned __int128)0 >> (128 - bits), bound = ~(unsigned __int128)0 / 10;
	unsigned base = 10;
	bool too_wide = false;

	if (length > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
		base = 16;
		bound = ~(unsigned __int128)0 / 16;
		at += 2;
		length -= 2;
	}
	if (!length)
		return NUMBER_MALFORMED;
	*value = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned digit = digit_of(at[i]);

		if (digit >= base)
			return NUMBER_MALFORMED;
		too_wide |= *value > bound;
		*value = *value * base + digit;
		too_wide |= *value < digit || *value > largest;
	}
	return too_wide ? NUMBER_TOO_WIDE : NUMBER_OK;
}

bool words_number(const struct words *words, uint64_t *number)
{
	unsigned __int128 value;

	if (text_read_number(words->word, words->word_bytes, 64, &value) != NUMBER_OK)
		return false;
	*number = (uint64_t)value;
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
		for (; at < end && digit_of(*at) < 16 && at - group < 4; at++)
			value = value << 4 | digit_of(*at);
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
