/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See request.h.
 */
#include "request.h"

size_t request_refuse(struct text *text, const char *why)
{
	text_put(text, "error ");
	text_put(text, why);
	text_put(text, "\n");
	return text_end(text);
}

size_t request_refuse_word(struct text *text, const char *label, const struct words *words,
			   const char *allowed)
{
	text_put(text, "error ");
	text_put(text, label);
	text_put(text, " '");
	text_put_bytes(text, words->word, words->word_bytes);
	text_put(text, "': ");
	text_put(text, allowed);
	text_put(text, "\n");
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
	text_put(text, "error ");
	text_put(text, label);
	text_put(text, " '");
	text_put_bytes(text, words->word, words->word_bytes);
	text_put(text, or_0 && min ? "': 0, or from " : "': from ");
	text_put_number(text, min);
	text_put(text, " to ");
	text_put_number(text, max);
	text_put(text, "\n");
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
			text_put(text, "error unknown setting '");
			text_put_bytes(text, words->word, words->word_bytes);
			text_put(text, "': one of");
			for (int index = 0; index < count; index++) {
				text_put(text, " ");
				text_put(text, settings[index].name);
			}
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
