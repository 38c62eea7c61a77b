/* SPDX-License-Identifier: MIT
 * A program's command line as a table: each option's row has the type of its value and where to store it. The whole
 * command line is checked before the program opens anything. Options are "--name value" or "--name=value". There are no
 * abbreviations: a new option must not change the meaning of a script.
 */
#ifndef LIB_OPTIONS_H
#define LIB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Exactly one destination is set: flag, text, number, choice or read. It decides the type of the value. */
struct option_row {
	const char *name;   /* without the dashes */
	const char *needed; /* the value's name in usage, for a required option; NULL: optional */
	bool *flag;	    /* set to sets; takes no value */
	bool sets;
	const char **text;
	uint64_t *number; /* from low to high */
	uint64_t low, high;
	unsigned int *choice; /* index of the value in words, which end with NULL */
	const char *const *words;
	/* Any other value; called for every occurrence. name has its dashes. Returns 0, or -EINVAL after one line. */
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

/* Parses argv by at most 32 rows, which end with OPTIONS_END. --help prints usage. Returns 0, 1 after --help, or -EINVAL
 * after a line that names the error. Text values point into argv.
 */
int options_read(const struct option_row *rows, const char *usage, int argc, char **argv);

#endif
