// SPDX-License-Identifier: MIT
// Reads the loss counters of /proc/self/net: a few small text files, twice in a run.
#include "losses.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/snmp.h"

enum { MAX_WORDS = 64 };

/* Splits line in place at blanks and colons. Returns the number of words, at most MAX_WORDS. */
static unsigned int split(char *line, char *words[MAX_WORDS])
{
	unsigned int count = 0;
	char *rest;

	for (char *word = strtok_r(line, " \t\n:", &rest); word && count < MAX_WORDS;
	     word = strtok_r(NULL, " \t\n:", &rest))
		words[count++] = word;
	return count;
}

static void for_each_line(const char *path,
			  void (*take)(struct losses *losses, char *words[], unsigned int count),
			  struct losses *losses)
{
	FILE *file = fopen(path, "re");
	char *words[MAX_WORDS], line[4096];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		take(losses, words, split(line, words));
	fclose(file);
}

static void take_udp(struct losses *losses, const char *name, const char *value)
{
	if (!strcmp(name, "RcvbufErrors"))
		losses->udp_receive_buffer += strtoull(value, NULL, 10);
	else if (!strcmp(name, "InCsumErrors"))
		losses->udp_checksum += strtoull(value, NULL, 10);
}

static void read_snmp(struct losses *losses)
{
	FILE *file = fopen("/proc/self/net/snmp", "re");

	if (!file)
		return;
	snmp_counter(file, "Udp", "RcvbufErrors", &losses->udp_receive_buffer);
	snmp_counter(file, "Udp", "InCsumErrors", &losses->udp_checksum);
	fclose(file);
}

/* snmp6: "Udp6RcvbufErrors 0" */
static void take_snmp6(struct losses *losses, char *words[], unsigned int count)
{
	if (count == 2 && !strncmp(words[0], "Udp6", 4))
		take_udp(losses, words[0] + 4, words[1]);
}

/* dev: two header lines, then "eth0: bytes packets errs drop ..." */
static void take_dev(struct losses *losses, char *words[], unsigned int count)
{
	if (count >= 17)
		losses->interface += strtoull(words[4], NULL, 10);
}

/* softnet_stat: a line for each CPU, in hex: processed, dropped, ... */
static void take_softnet(struct losses *losses, char *words[], unsigned int count)
{
	if (count >= 2)
		losses->backlog += strtoull(words[1], NULL, 16);
}

void losses_read(struct losses *losses)
{
	*losses = (struct losses){0};
	read_snmp(losses);
	for_each_line("/proc/self/net/snmp6", take_snmp6, losses);
	for_each_line("/proc/self/net/dev", take_dev, losses);
	for_each_line("/proc/net/softnet_stat", take_softnet, losses);
}

/* Some counters have 32 bits in the kernel. After a wrap-around the growth is unknown, and counts as 0. */
static uint64_t growth(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

struct losses losses_since(const struct losses *before)
{
	struct losses now;

	losses_read(&now);
	return (struct losses){
		.udp_receive_buffer = growth(before->udp_receive_buffer, now.udp_receive_buffer),
		.udp_checksum = growth(before->udp_checksum, now.udp_checksum),
		.interface = growth(before->interface, now.interface),
		.backlog = growth(before->backlog, now.backlog),
	};
}
