// SPDX-License-Identifier: MIT
// Keeps the end of libbpf's messages. The verifier gives the reason for a refusal in the last line of its log above the
// statistics. Before each instruction's state the log quotes the source line, "; text @ file.c:12".
#include "libbpf_words.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { KEPT_BYTES = 1 << 20 };

static char kept[KEPT_BYTES];
static size_t used;

static int keep(enum libbpf_print_level level, const char *format, va_list arguments)
{
	int length;

	if (level == LIBBPF_DEBUG)
		return 0;
	if (used > sizeof(kept) / 2) { /* the reason is at the end */
		memmove(kept, kept + used / 2, used - used / 2);
		used -= used / 2;
	}
	length = vsnprintf(kept + used, sizeof(kept) - used, format, arguments);
	if (length > 0)
		used += (size_t)length < sizeof(kept) - used ? (size_t)length : sizeof(kept) - used - 1;
	return 0;
}

void libbpf_listen(void)
{
	used = 0;
	libbpf_set_print(keep);
}

static bool begins(const char *line, const char *with)
{
	return !strncmp(line, with, strlen(with));
}

/* Lines of the log that do not give the reason: the verifier's statistics and states. */
static bool is_statistics(const char *line)
{
	static const char *const starts[] = {"processed ", "verification time", "stack depth",
					     "func#",	   "Live regs",		NULL};

	for (const char *const *start = starts; *start; start++)
		if (begins(line, *start))
			return true;
	return !*line;
}

/* libc has no text for some of the kernel's error numbers. */
static void without_unnamed_error(char *line)
{
	char *end = strstr(line, ": BPF program load failed: ERROR: strerror_r");

	if (end)
		*end = '\0';
}

void libbpf_last_words(char *words, size_t bytes)
{
	char source[WORDS_BYTES / 2] = "", reason[WORDS_BYTES / 2] = "", first[WORDS_BYTES / 2] = "";
	bool in_log = false;
	char *rest = kept;

	kept[used] = '\0';
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *at;

		if (strstr(line, "-- END PROG LOAD LOG")) {
			break;
		} else if (strstr(line, "-- BEGIN PROG LOAD LOG")) {
			in_log = true;
		} else if (in_log && begins(line, "; ") && (at = strstr(line, " @ "))) {
			snprintf(source, sizeof(source), "%s: '%.*s'", at + 3, (int)(at - line - 2),
				 line + 2);
		} else if (in_log && !is_statistics(line)) {
			snprintf(reason, sizeof(reason), "%s", line);
		} else if (!in_log && begins(line, "libbpf: ") &&
			   !begins(line, "libbpf: failed to load object")) {
			snprintf(first, sizeof(first), "%s", line + strlen("libbpf: "));
		}
	}
	without_unnamed_error(first);
	snprintf(words, bytes, "%s%s%s", *reason ? source : "", *reason && *source ? ": " : "",
		 *reason ? reason : first);
	used = 0;
}
