// SPDX-License-Identifier: MIT
// Parses a command line by a table. getopt_long would accept abbreviations, and print errors in its own words.
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

enum { NAME_BYTES = 64, CHOICES_BYTES = 256 };

static int read_choice(const struct option_row *row, const char *name, const char *text)
{
	char all[CHOICES_BYTES] = "";
	size_t used = 0;

	for (unsigned int at = 0; row->words[at]; at++) {
		if (!strcmp(text, row->words[at])) {
			*row->choice = at;
			return 0;
		}
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
					 !at		      ? ""
					 : row->words[at + 1] ? ", "
							      : " or ",
					 row->words[at]);
		if (used >= sizeof(all))
			used = sizeof(all) - 1;
	}
	complain("%s '%s': give %s", name, text, all);
	return -EINVAL;
}

static int read_value(const struct option_row *row, const char *name, char *text)
{
	if (row->number)
		return parse_number(name, text, row->low, row->high, row->number);
	if (row->choice)
		return read_choice(row, name, text);
	if (row->read)
		return row->read(row->to, name, text);
	*row->text = text;
	return 0;
}

/* The row of the option whose name is the first length bytes of word; NULL if there is none. */
static const struct option_row *find(const struct option_row *rows, const char *word, size_t length)
{
	for (; rows->name; rows++)
		if (strlen(rows->name) == length && !strncmp(rows->name, word, length))
			return rows;
	return NULL;
}

/* Reads an option and its value. `words` follow the option; *used becomes 1 if the first word was the value. */
static int take(const struct option_row *row, const char *equals, char **words, int *used)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "--%s", row->name);
	if (row->flag && equals) {
		complain("%s: does not take a value (%s --help lists the options)", name, program_name);
		return -EINVAL;
	}
	if (row->flag) {
		*row->flag = row->sets;
		return 0;
	}
	if (equals)
		return read_value(row, name, (char *)equals + 1);
	if (!*words) {
		complain("%s: its value is missing (%s --help lists the options)", name, program_name);
		return -EINVAL;
	}
	*used = 1;
	return read_value(row, name, *words);
}

static int check_needed(const struct option_row *rows, uint32_t present)
{
	for (uint32_t at = 0; rows[at].name; at++) {
		if (rows[at].needed && !(present & UINT32_C(1) << at)) {
			complain("--%s %s is missing (%s --help lists the options)", rows[at].name,
				 rows[at].needed, program_name);
			return -EINVAL;
		}
	}
	return 0;
}

int options_read(const struct option_row *rows, const char *usage, int argc, char **argv)
{
	uint32_t present = 0;
	int err = 0, used;

	for (int at = 1; !err && at < argc; at += 1 + used) {
		const char *word = argv[at], *equals = strchr(word, '=');
		const struct option_row *row = NULL;

		used = 0;
		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			fputs(usage, stdout);
			return 1;
		}
		if (!strncmp(word, "--", 2))
			row = find(rows, word + 2, equals ? (size_t)(equals - word) - 2 : strlen(word) - 2);
		if (!row) {
			complain("%s: not an option (%s --help lists them)", word, program_name);
			return -EINVAL;
		}
		present |= UINT32_C(1) << (row - rows);
		err = take(row, equals, argv + at + 1, &used);
	}
	return err ? err : check_needed(rows, present);
}
