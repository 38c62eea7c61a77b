// SPDX-License-Identifier: MIT
// The least that an AF_XDP receiver does, to compare the collector with: takes UDP frames for a port from the first queue
// of an interface (generic XDP, copy mode), reads each frame's last 8 bytes, and gives the frame back. It stores
// nothing, and its frames have no stamps. The XDP program is gone when this program ends. Prints its counts on SIGTERM.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/options.h"
#include "lib/report.h"

enum { FRAMES = 1 << 15, FRAME_BYTES = 2048, NAP_NS = 1000000, TYPE_AT = 12, PROTOCOL_AT = 23, PORT_AT = 36 };

const char *const program_name = "xdp_sink";

/* A ring that is shared with the kernel; this program moves one of its ends. */
struct xdp_ring {
	uint32_t *producer, *consumer;
	void *entries;
};

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal)
{
	(void)signal;
	stop_requested = 1;
}

static int must(const char *doing, long result)
{
	if (result < 0) {
		complain("%s: %s", doing, strerror(errno));
		exit(EXIT_REFUSED);
	}
	return (int)result;
}

static int bpf(const char *doing, int command, union bpf_attr *attributes)
{
	return must(doing, syscall(SYS_bpf, command, attributes, sizeof(*attributes)));
}

/* Attaches a program that passes IPv4 UDP to this port to the AF_XDP socket, and everything else to the host. */
static void attach(unsigned int ifindex, uint16_t port, int socket_fd)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
	int sockets = bpf("making the map of sockets", BPF_MAP_CREATE, &map), first = 0;
	union bpf_attr element = {
		.map_fd = (uint32_t)sockets, .key = (uintptr_t)&first, .value = (uintptr_t)&socket_fd};
	const struct bpf_insn code[] = {
		{BPF_LDX | BPF_MEM | BPF_W, 7, 1, offsetof(struct xdp_md, data), 0},
		{BPF_LDX | BPF_MEM | BPF_W, 3, 1, offsetof(struct xdp_md, data_end), 0},
		{BPF_ALU64 | BPF_MOV | BPF_X, 4, 7, 0, 0},
		{BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, PORT_AT + 2},
		{BPF_JMP | BPF_JGT | BPF_X, 4, 3, 12, 0},
		{BPF_LDX | BPF_MEM | BPF_H, 0, 7, TYPE_AT, 0},
		{BPF_JMP | BPF_JNE | BPF_K, 0, 0, 10, htons(0x0800)},
		{BPF_LDX | BPF_MEM | BPF_B, 0, 7, PROTOCOL_AT, 0},
		{BPF_JMP | BPF_JNE | BPF_K, 0, 0, 8, IPPROTO_UDP},
		{BPF_LDX | BPF_MEM | BPF_H, 0, 7, PORT_AT, 0},
		{BPF_JMP | BPF_JNE | BPF_K, 0, 0, 6, htons(port)},
		{BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, sockets},
		{0, 0, 0, 0, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS},
		{BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	union bpf_attr program = {.prog_type = BPF_PROG_TYPE_XDP,
				  .insns = (uintptr_t)code,
				  .insn_cnt = sizeof(code) / sizeof(*code),
				  .license = (uintptr_t)"GPL"};
	union bpf_attr link = {0};

	bpf("adding the socket to the map", BPF_MAP_UPDATE_ELEM, &element);
	link.link_create.prog_fd = (uint32_t)bpf("loading the XDP program", BPF_PROG_LOAD, &program);
	link.link_create.target_ifindex = ifindex;
	link.link_create.attach_type = BPF_XDP;
	link.link_create.flags = XDP_FLAGS_SKB_MODE;
	bpf("attaching the XDP program", BPF_LINK_CREATE, &link);
}

static struct xdp_ring map_ring(int fd, const struct xdp_ring_offset *at, size_t entry_bytes, off_t page)
{
	uint8_t *map = mmap(NULL, at->desc + FRAMES * entry_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, fd, page);

	must("mapping a ring", map == MAP_FAILED ? -1 : 0);
	return (struct xdp_ring){(void *)(map + at->producer), (void *)(map + at->consumer), map + at->desc};
}

static void set_size(int fd, int ring)
{
	int frames = FRAMES;

	must("setting the size of a ring", setsockopt(fd, SOL_XDP, ring, &frames, sizeof(frames)));
}

/* Takes the frames that came, and gives them back. Returns their number. */
static uint32_t take(struct xdp_ring *came, struct xdp_ring *free_frames, const uint8_t *memory,
		     uint64_t *sum)
{
	uint32_t from = *came->consumer, to = __atomic_load_n(came->producer, __ATOMIC_ACQUIRE);
	uint32_t place = *free_frames->producer;
	uint64_t tail;

	for (uint32_t at = from; at != to; at++, place++) {
		const struct xdp_desc *frame = (struct xdp_desc *)came->entries + at % FRAMES;

		memcpy(&tail, memory + frame->addr + frame->len - sizeof(tail), sizeof(tail));
		*sum += tail;
		((uint64_t *)free_frames->entries)[place % FRAMES] = frame->addr / FRAME_BYTES * FRAME_BYTES;
	}
	__atomic_store_n(came->consumer, to, __ATOMIC_RELEASE);
	__atomic_store_n(free_frames->producer, place, __ATOMIC_RELEASE);
	return to - from;
}

int main(int argc, char **argv)
{
	const char *interface;
	uint64_t port, received = 0, sum = 0;
	const struct option_row rows[] = {
		OPTION_NEEDED_TEXT("interface", "IF", &interface),
		OPTION_NEEDED_NUMBER("port", &port, 1, UINT16_MAX),
		OPTIONS_END,
	};
	struct xdp_mmap_offsets at;
	struct xdp_statistics stats;
	socklen_t at_bytes = sizeof(at), stats_bytes = sizeof(stats);
	struct xdp_umem_reg memory = {.len = (uint64_t)FRAMES * FRAME_BYTES, .chunk_size = FRAME_BYTES};
	struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY};
	const struct timespec nap = {0, NAP_NS};
	struct xdp_ring came, free_frames;
	uint8_t *frames;
	int fd, err = options_read(rows, "xdp_sink --interface IF --port N\n", argc, argv);

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	signal(SIGTERM, request_stop);
	fd = must("opening an AF_XDP socket", socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
	frames = mmap(NULL, memory.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		      -1, 0);
	must("allocating frames", frames == MAP_FAILED ? -1 : 0);
	memory.addr = (uintptr_t)frames;
	must("registering frames", setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)));
	set_size(fd, XDP_UMEM_FILL_RING);
	set_size(fd, XDP_UMEM_COMPLETION_RING); /* unused, but needed to bind */
	set_size(fd, XDP_RX_RING);
	must("asking for the rings", getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &at_bytes));
	came = map_ring(fd, &at.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
	free_frames = map_ring(fd, &at.fr, sizeof(uint64_t), (off_t)XDP_UMEM_PGOFF_FILL_RING);
	for (uint32_t frame = 0; frame < FRAMES; frame++)
		((uint64_t *)free_frames.entries)[frame] = (uint64_t)frame * FRAME_BYTES;
	__atomic_store_n(free_frames.producer, FRAMES, __ATOMIC_RELEASE);
	address.sxdp_ifindex = if_nametoindex(interface);
	must("binding to the interface", bind(fd, (struct sockaddr *)&address, sizeof(address)));
	attach(address.sxdp_ifindex, (uint16_t)port, fd);
	puts("ready");
	fflush(stdout);
	for (uint32_t count; (count = take(&came, &free_frames, frames, &sum)) || !stop_requested;
	     received += count)
		if (!count)
			ppoll(NULL, 0, &nap, NULL);
	must("reading the counters", getsockopt(fd, SOL_XDP, XDP_STATISTICS, &stats, &stats_bytes));
	printf("{\"received\": %" PRIu64 ", \"kernel_drops\": %" PRIu64 ", \"sum\": %" PRIu64 "}\n", received,
	       (uint64_t)(stats.rx_dropped + stats.rx_ring_full + stats.rx_fill_ring_empty_descs), sum);
	return EXIT_SUCCESS;
}
