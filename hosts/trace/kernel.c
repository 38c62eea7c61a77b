// SPDX-License-Identifier: MIT
// Reads the tracepoints from the kernel's BTF, the inode of a namespace, and the list of CPUs.
#include "kernel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/report.h"

#define PRESENT_CPUS "/sys/devices/system/cpu/present"

static bool libbpf_may_speak;

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	return libbpf_may_speak ? vfprintf(stderr, format, args) : 0;
}

/* Number of a tracepoint's arguments as BPF programs see them, without the leading void *; -ENOENT if the kernel
 * has no such tracepoint. */
static int tracepoint_arguments(const struct btf *btf, const char *name)
{
	const struct btf_type *type;
	char typedef_name[64];
	int id;

	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, typedef_name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -ENOENT;
	type = btf__type_by_id(
		btf, btf__type_by_id(btf, (uint32_t)id)->type); /* typedef -> pointer -> prototype */
	type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type) : NULL;
	if (!type || !btf_is_func_proto(type))
		return -ENOENT;
	return btf_vlen(type) - 1;
}

static int check_tracepoints(struct kernel *kernel, const struct btf *btf, const char *btf_path)
{
	int probe = tracepoint_arguments(btf, "tcp_probe");
	int retransmit = tracepoint_arguments(btf, "tcp_retransmit_skb");

	if (probe < 2 || retransmit < 2) {
		complain("looking for tracepoint tcp:%s in %s: there is none: the kernel must be Linux 5.12 "
			 "or later with CONFIG_INET and CONFIG_TRACEPOINTS",
			 probe < 2 ? "tcp_probe" : "tcp_retransmit_skb", btf_path);
		return -ENOENT;
	}
	kernel->retransmit_has_error = retransmit >= 3;
	return 0;
}

static int check_btf(struct kernel *kernel, const char *btf_path)
{
	struct btf *btf;
	int err;

	if (access(btf_path, R_OK)) {
		err = -errno;
		complain("reading the kernel's types from %s: %s: boot a kernel built with "
			 "CONFIG_DEBUG_INFO_BTF=y "
			 "(distribution kernels since Debian 11, Ubuntu 20.10, RHEL 8.2 are)",
			 btf_path, strerror(-err));
		return err;
	}
	btf = btf__parse(btf_path, NULL);
	if (!btf) {
		err = -errno;
		complain("reading the kernel's types from %s: this is not BTF; leave --btf out to use the "
			 "running kernel's BTF (CONFIG_DEBUG_INFO_BTF=y)",
			 btf_path);
		return err;
	}
	err = check_tracepoints(kernel, btf, btf_path);
	btf__free(btf);
	return err;
}

int kernel_netns_inode(const char *path, uint32_t *inode)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	int err = 0;

	if (fd < 0) {
		err = -errno;
		complain("opening network namespace %s: %s: give the path of one (`ip netns list` names "
			 "those in /run/netns)",
			 path, strerror(-err));
		return err;
	}
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET || fstat(fd, &status)) {
		complain("opening network namespace %s: it is not one: give /run/netns/NAME or "
			 "/proc/PID/ns/net",
			 path);
		err = -EINVAL;
	} else {
		*inode = (uint32_t)status.st_ino;
	}
	close(fd);
	return err;
}

int kernel_check(struct kernel *kernel, const char *btf_path, bool verbose)
{
	int cpus = libbpf_num_possible_cpus();

	libbpf_may_speak = verbose;
	libbpf_set_print(print_libbpf);
	*kernel = (struct kernel){0};
	if (cpus < 0) {
		complain("counting CPUs in /sys/devices/system/cpu/possible: %s: mount sysfs",
			 strerror(-cpus));
		return cpus;
	}
	kernel->possible_cpus = (uint32_t)cpus;
	return check_btf(kernel, btf_path);
}

int kernel_each_present_cpu(int (*each)(uint32_t cpu, void *context), void *context)
{
	FILE *file = fopen(PRESENT_CPUS, "re");
	unsigned first, last;
	char separator = ',';
	int err = file ? 0 : -errno;

	/* "0-3,8,10-11": ranges, each followed by a comma or the end */
	while (!err && separator == ',' && fscanf(file, "%u", &first) == 1) {
		last = first;
		if (fscanf(file, "-%u", &last) < 0)
			last = first;
		for (unsigned cpu = first; !err && cpu <= last; cpu++)
			err = each(cpu, context);
		if (fscanf(file, "%c", &separator) != 1)
			separator = '\n';
	}
	if (file)
		fclose(file);
	else
		complain("reading %s: %s: mount sysfs", PRESENT_CPUS, strerror(-err));
	return err;
}
