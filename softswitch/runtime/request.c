/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See request.h.
 */
#include "request.h"

size_t request_refuse(struct text *text, const char *why)
{
	text_format(text, "error %s\n", why);
	return text_end(text);
}

size_t request_refuse_word(struct text *text, const char *label, const struct words *words,
			   const char *allowed)
{
	text_format(text, "error %s '%.*s': %s\n", label, WORD_OF(words), allowed);
	return text_end(text);
}

size_t request_accept(struct text *text)
{
	text_put(text, "ok\n");
	return text_end(text);
}

size_t request_number(struct text *text, const struct words *words, const char *label, uint64_t min,
		      uint64_t max, bool or_0, uint64_t *number)
{
	if (words_number(words, number) && *number <= max && (*number >= min || (or_0 && !*number)))
		return 0;
	text_format(text, "error %s '%.*s': %sfrom %llu to %llu\n", label, WORD_OF(words),
		    or_0 && min ? "0, or " : "", (unsigned long long)min, (unsigned long long)max);
	return text_end(text);
}

size_t request_settings(struct text *text, struct words *words, struct setting *settings, int count,
			const char *end)
{
	while (words_next(words) && !(end && words_is(words, end))) {
		struct setting *setting = NULL;
		uint64_t value;
		size_t error;

		for (int index = 0; index < count && !setting; index++)
			if (words_is(words, settings[index].name))
				setting = &settings[index];
		if (!setting) {
			text_format(text, "error unknown setting '%.*s': one of", WORD_OF(words));
			for (int index = 0; index < count; index++)
				text_format(text, " %s", settings[index].name);
			text_put(text, "\n");
			return text_end(text);
		}
		words_next(words);
		error = request_number(text, words, setting->name, setting->min, setting->max, true, &value);
		if (error)
			return error;
		setting->value = value;
	}
	return 0;
}
