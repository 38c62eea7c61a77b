/* SPDX-License-Identifier: MIT
 * A program's command line as a table: a row for each option says what it takes and where it goes. All of it is
 * checked before the program opens anything. Options have one form, "--name value" or "--name=value", and no
 * abbreviations: a script shall not change its meaning with a new option.
 */
#ifndef LIB_OPTIONS_H
#define LIB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Where a value goes decides what is taken: one of flag to read. */
struct option_row {
	const char *name;   /* without the dashes */
	const char *needed; /* how usage names the value of an option that must be there; NULL: it need not */
	bool *flag;	    /* set to sets; takes no value */
	bool sets;
	const char **text;
	uint64_t *number; /* from low to high */
	uint64_t low, high;
	unsigned int *choice; /* the place of the value among words, which end with NULL */
	const char *const *words;
	/* Anything else, as often as it is given. name has its dashes. 0, or -EINVAL after one line. */
	int (*read)(void *to, const char *name, char *text);
	void *to;
};

#define OPTION_FLAG(option, where)		 {.name = (option), .flag = (where), .sets = true}
#define OPTION_FLAG_OFF(option, where)		 {.name = (option), .flag = (where)}
#define OPTION_TEXT(option, where)		 {.name = (option), .text = (where)}
#define OPTION_NEEDED_TEXT(option, shown, where) {.name = (option), .needed = (shown), .text = (where)}
#define OPTION_NUMBER(option, where, least, most)                                                            \
	{.name = (option), .number = (where), .low = (least), .high = (most)}
#define OPTION_NEEDED_NUMBER(option, where, least, most)                                                     \
	{.name = (option), .needed = "N", .number = (where), .low = (least), .high = (most)}
#define OPTION_CHOICE(option, where, choices) {.name = (option), .choice = (where), .words = (choices)}
#define OPTION_READ(option, function, where)  {.name = (option), .read = (function), .to = (where)}
#define OPTION_NEEDED_READ(option, shown, function, where)                                                   \
	{.name = (option), .needed = (shown), .read = (function), .to = (where)}
#define OPTIONS_END {.name = NULL}

/* Reads argv by the rows, at most 32, which end with OPTIONS_END. --help prints usage. 0; 1 after help; -EINVAL after
 * one line of what is wrong. Values are kept where they are in argv.
 */
int options_read(const struct option_row *rows, const char *usage, int argc, char **argv);

#endif
