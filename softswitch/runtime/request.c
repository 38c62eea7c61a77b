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

size_t request_settings(struct text *text, struct words *words, struct setting *settings, int count,
			const char *end)
{
	while (words_next(words) && !(end && words_is(words, end))) {
		struct setting *setting = NULL;
		uint64_t value;

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
		if (!words_next(words) || !words_number(words, &value) || value > setting->max ||
		    (value && value < setting->min)) {
			text_put(text, "error ");
			text_put(text, setting->name);
			text_put(text, " '");
			text_put_bytes(text, words->word, words->word_bytes);
			text_put(text, setting->min ? "': 0, or from " : "': from ");
			text_put_number(text, setting->min);
			text_put(text, " to ");
			text_put_number(text, setting->max);
			text_put(text, "\n");
			return text_end(text);
		}
		setting->value = value;
	}
	return 0;
}
