/* SPDX-License-Identifier: MIT
 * The soft switch as a process: runs the core from packet rings in real time. main() is the table of contents.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "shell.h"

const char *const program_name = "softswitch";

enum {
	DEFAULT_PACKETS = 32768,
	DEFAULT_POOL_BYTES = 160 << 20,
	HUGE_PAGE_BYTES = 2 << 20,
};

static int check_interfaces(struct options *options)
{
	uint32_t frame_bytes = 0;

	for (uint32_t index = 0; index < options->port_count; index++) {
		const char *interface = options->ports[index].interface;
		int mtu = ring_interface_mtu(interface);

		if (mtu < 0)
			return mtu;
		if (!options->allow_offloads && ring_check_offloads(interface))
			return -EINVAL;
		if ((uint32_t)mtu + ETHERNET_BYTES + VLAN_BYTES > frame_bytes)
			frame_bytes = (uint32_t)mtu + ETHERNET_BYTES + VLAN_BYTES;
	}
	if (!options->frame_bytes)
		options->frame_bytes =
			frame_bytes < CORE_MAX_FRAME_BYTES ? frame_bytes : CORE_MAX_FRAME_BYTES;
	if (options->frame_bytes < EXECUTOR_MIN_FRAME_BYTES)
		options->frame_bytes = EXECUTOR_MIN_FRAME_BYTES;
	if (!options->packets) {
		uint32_t fitting = DEFAULT_POOL_BYTES / (options->frame_bytes + 1024);

		options->packets = fitting < DEFAULT_PACKETS ? fitting : DEFAULT_PACKETS;
	}
	return 0;
}

/* Asks for huge pages: a packet then costs only its few cache misses, and no TLB misses. */
static int create_core(struct shell *shell, const struct options *options)
{
	struct core_config config = {
		.packets = options->packets,
		.frame_bytes = options->frame_bytes,
		.flows = options->flows,
		.rate_entries = options->rate_entries,
		.tap = options->tap_count ? taps_record : NULL,
	};
	size_t bytes = core_memory_bytes(&config);
	void *memory = aligned_alloc(HUGE_PAGE_BYTES,
				     (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES);

	if (!memory) {
		complain("allocating %zu MiB for %u packets: out of memory: give fewer --packets",
			 bytes >> 20, config.packets);
		return -ENOMEM;
	}
	madvise(memory, bytes, MADV_HUGEPAGE);
	shell->core = shell->executor.core = core_create(memory, &config);
	return 0;
}

static int open_ports(struct shell *shell, const struct options *options)
{
	shell->ports = calloc(options->port_count, sizeof(*shell->ports));
	shell->executor.ports = calloc(options->port_count, sizeof(*shell->executor.ports));
	if (!shell->ports || !shell->executor.ports || outputs_open(&shell->backlog, options->packets)) {
		complain("allocating the ports and a backlog of %u packets: out of memory: give fewer "
			 "--packets",
			 options->packets);
		return -ENOMEM;
	}
	for (uint32_t index = 0; index < options->port_count; index++) {
		struct executor_port *counters = &shell->executor.ports[index];
		struct port_io *port = &shell->ports[index];
		int error;

		counters->number = options->ports[index].number;
		port->number = options->ports[index].number;
		strcpy(port->interface, options->ports[index].interface);
		port->ring.fd = port->transmit.fd = -1;
		shell->by_number[port->number] = port;
		shell->executor.port_count = ++shell->port_count;
		error = transmit_open(&port->transmit, counters, port->interface);
		if (!error)
			error = core_attach_port(shell->core, port->number);
		if (!error)
			error = ring_open(&port->ring, counters, port->interface, options->frame_bytes,
					  options->ring_mib);
		if (error)
			return error;
	}
	return 0;
}

static void close_ports(struct shell *shell)
{
	for (uint32_t index = 0; index < shell->port_count; index++) {
		ring_close(&shell->ports[index].ring);
		transmit_close(&shell->ports[index].transmit);
	}
	outputs_close(&shell->backlog);
	free(shell->ports);
	free(shell->executor.ports);
}

/* A signalfd: a signal ends the loop between two turns and never interrupts one. */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		complain("catching signals: %s", strerror(errno));
	return fd < 0 ? -errno : fd;
}

/* Prints one line with NAME=VALUE for every counter. */
static void print_stats(struct shell *shell, struct control_socket *control)
{
	char *at = control->reply;
	char *line;

	executor_answer(&shell->executor, "stats", strlen("stats"), control->reply, sizeof(control->reply));
	fputs("softswitch:", stderr);
	strsep(&at, "\n");
	while ((line = strsep(&at, "\n")) && *line) {
		char *space = strchr(line, ' ');

		if (space)
			*space = '=';
		fprintf(stderr, " %s", line);
	}
	fputs("\n", stderr);
}

int main(int argc, char **argv)
{
	static struct control_socket control = {.fd = -1};
	static struct options options;
	struct shell shell = {.executor = {.name = "process", .measure = control_measure}};
	int signal_fd = -1;
	int error;

	error = options_parse(&options, argc, argv);
	if (error)
		return error < 0;
	shell.horizon_ns = options.horizon_ns;
	shell.spin = options.spin;
	shell.watch = options.watch;

	error = privileges_check();
	if (!error)
		error = check_interfaces(&options);
	if (!error)
		error = control_open(&control, options.control_path);
	if (!error)
		error = signal_fd = open_signals();
	if (error >= 0)
		error = create_core(&shell, &options);
	if (error >= 0)
		error = open_ports(&shell, &options);
	if (error >= 0) {
		clock_offset_open(&shell.clock);
		error = taps_open(&options, &shell.clock);
	}
	if (error >= 0) {
		privileges_lock_memory();
		privileges_schedule(options.boost);
		if (options.drop_user)
			error = privileges_drop(options.drop_user);
	}
	if (error >= 0) {
		puts("ready");
		fflush(stdout);
		loop_run(&shell, &control, signal_fd);
		print_stats(&shell, &control);
	}
	taps_close();
	control_close(&control);
	close_ports(&shell);
	free(shell.core);
	return error < 0;
}
