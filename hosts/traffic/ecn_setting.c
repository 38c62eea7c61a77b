// SPDX-License-Identifier: MIT
#include "ecn_setting.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/report.h"

#define SETTING "/proc/sys/net/ipv4/tcp_ecn"

int ecn_setting_open(struct ecn_setting *setting, bool differs)
{
	ssize_t length;

	*setting = (struct ecn_setting){.fd = -1};
	if (!differs)
		return 0;
	setting->fd = open(SETTING, O_RDWR | O_CLOEXEC);
	length = setting->fd < 0 ? -1 : pread(setting->fd, setting->before, sizeof(setting->before) - 1, 0);
	if (length > 0)
		return 0;
	complain("opening %s: %s: some flows ask for ECN and some do not, which needs root", SETTING,
		 strerror(errno));
	return -EACCES;
}

int ecn_setting_set(struct ecn_setting *setting, bool on)
{
	char value = on ? '1' : '0';

	if (setting->fd < 0 || setting->now == value)
		return 0;
	if (pwrite(setting->fd, &value, 1, 0) != 1)
		return -errno;
	setting->now = value;
	return 0;
}

void ecn_setting_close(struct ecn_setting *setting)
{
	if (setting->fd < 0)
		return;
	if (setting->now && pwrite(setting->fd, setting->before, strlen(setting->before), 0) < 0)
		complain("restoring %s: %s", SETTING, strerror(errno));
	close(setting->fd);
	setting->fd = -1;
}
