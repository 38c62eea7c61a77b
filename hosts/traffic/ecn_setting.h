/* SPDX-License-Identifier: MIT
 * Whether the next connection of this network namespace asks for ECN: net.ipv4.tcp_ecn. ECN has no socket option. The
 * kernel reads the setting when a socket connects, so a single-threaded program can set it before each connection.
 */
#ifndef TRAFFIC_ECN_SETTING_H
#define TRAFFIC_ECN_SETTING_H

#include <stdbool.h>

struct ecn_setting {
	int fd; /* -1: the setting is never changed */
	char before[4];
	char now; /* '0', '1', or 0 before the first change */
};

/* Opens the setting if flows differ in ECN. 0, or -errno after one message. */
int ecn_setting_open(struct ecn_setting *setting, bool differs);
/* 0 or -errno. */
int ecn_setting_set(struct ecn_setting *setting, bool on);
/* Restores the setting as it was before. */
void ecn_setting_close(struct ecn_setting *setting);

#endif
