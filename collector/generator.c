// SPDX-License-Identifier: MIT
// Sends sample postcards, for tests and to measure collectors: at the full speed of one core, or at a given rate.
//
// Through a UDP socket, which needs no privileges; or as frames that come in at an interface, as if its NIC had received
// them (BPF_PROG_TEST_RUN with live frames): a packet costs what a NIC's costs in the kernel, and nothing is spent on
// sending. UDP_SEGMENT was faster than both, but passes the stack once for 64 postcards, as no switch's postcards do.
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "lib/clock_ns.h"
#include "lib/options.h"
#include "lib/report.h"
#include "wire/postcard.h"

enum {
	MAX_BATCH = 64,
	MAX_RUN = 1 << 16, /* frames of one system call */
	RUNS_PER_S = 10,   /* at a given rate; each run costs some 20 ms */
	HEADER_BYTES = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr),
	FRAME_BYTES = HEADER_BYTES + POSTCARD_BYTES,
	SEQ_AT = HEADER_BYTES + offsetof(struct postcard_layout, card_seq),
	FIRST_SOURCE_PORT = 50000, /* + the switch's id */
	RETRY_NS = 100000,
	RETRIES_IN_A_ROW = 100000, /* 10 s without room: give up */
	PACE_NS = 1000000,	   /* at a given rate, the longest time for a batch */
};

const char *const program_name = "postcard_generator";

static const char help_text[] =
	"postcard_generator --to ADDRESS:PORT --count N [--rate R] [--switch-id N]\n"
	"                   [--interface IF --from ADDRESS]\n"
	"\n"
	"Sends N correct postcards with consecutive numbers, at most R per second "
	"(default: unlimited), and prints its\n"
	"result as a JSON object. With --interface they come from an IPv4 address into "
	"this interface of the\n"
	"receiving host, as if its NIC had received them (root).\n";

struct sender {
	struct address to, from;
	const char *interface; /* NULL: by a socket */
	uint64_t switch_id;
	uint64_t count;
	uint64_t rate_per_s; /* 0: unlimited */
	uint64_t sent;
	uint64_t retries; /* sends repeated because the kernel had no room */
	int fd;		  /* the socket, or the BPF program */
	unsigned int ifindex;
	uint8_t frame[FRAME_BYTES];
	uint8_t cards[MAX_BATCH * POSTCARD_BYTES];
	struct mmsghdr messages[MAX_BATCH];
	struct iovec iov[MAX_BATCH];
};

/* ::ffff:10.77.0.x */
static uint128_t mapped(unsigned int host)
{
	return (uint128_t)0xffff << 32 | 10u << 24 | 77u << 16 | host;
}

/* Changes only the fields that differ between consecutive postcards: a tenth of the work. */
static void sample_renumber(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns)
{
	uint8_t *at = buffer + offsetof(struct postcard_layout, card_seq);

	put_be(&at, card_seq, 4);
	at = buffer + offsetof(struct postcard_layout, enqueue_switch_ns);
	put_be(&at, enqueue_ns, 6);
	at = buffer + offsetof(struct postcard_layout, tcp_seq);
	put_be(&at, card_seq * 1448u, 4);
}

/* Encodes a whole postcard: a forwarded TCP segment of 1514 bytes, number card_seq. The same number and time give the
 * same postcard.
 */
static void sample_encode(uint8_t *buffer, uint16_t switch_id, uint32_t card_seq, uint64_t enqueue_ns)
{
	const struct postcard card = {
		.version = POSTCARD_VERSION,
		.flags = POSTCARD_HAS_IP | POSTCARD_HAS_PORTS | POSTCARD_HAS_TCP,
		.switch_id = switch_id,
		.ingress_port = 1,
		.egress_port = 2,
		.sojourn_ns = 1000000,
		.depth_packets = 80,
		.depth_bytes = 80 * 1514,
		.threshold = 163,
		.packet_bytes = 1514,
		.ip_protocol = 6,
		.tcp_flags = 0x10,
		.src_addr = mapped(1),
		.dst_addr = mapped(2),
		.src_port = 30000,
		.dst_port = 5201,
		.tcp_ack = 1,
	};

	postcard_encode(buffer, &card);
	sample_renumber(buffer, card_seq, enqueue_ns);
}

static int parse(struct sender *sender, int argc, char **argv)
{
	const struct option_row rows[] = {
		OPTION_NEEDED_READ("to", "ADDRESS:PORT", address_read, &sender->to),
		OPTION_NEEDED_NUMBER("count", &sender->count, 1, 1ULL << 40),
		OPTION_NUMBER("rate", &sender->rate_per_s, 1, 1000000000),
		OPTION_NUMBER("switch-id", &sender->switch_id, 0, 1000),
		OPTION_TEXT("interface", &sender->interface),
		OPTION_READ("from", address_read_host, &sender->from),
		OPTIONS_END,
	};
	int err;

	sender->switch_id = 1;
	err = options_read(rows, help_text, argc, argv);
	if (!err && !sender->to.length) {
		complain("--to %s: give an address, too", sender->to.text);
		return -EINVAL;
	}
	if (!err && sender->interface &&
	    (sender->to.storage.ss_family != AF_INET || sender->from.storage.ss_family != AF_INET ||
	     strlen(sender->interface) >= IF_NAMESIZE)) {
		complain("--interface %s: give the name of an interface, and IPv4 addresses as --to and "
			 "--from",
			 sender->interface);
		return -EINVAL;
	}
	return err;
}

static void sleep_until(uint64_t mono_ns)
{
	const struct timespec when = {.tv_sec = (time_t)(mono_ns / 1000000000u),
				      .tv_nsec = (long)(mono_ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

static int bpf(int command, union bpf_attr *attributes)
{
	long result = syscall(SYS_bpf, command, attributes, sizeof(*attributes));

	return result < 0 ? -errno : (int)result;
}

/* Loads an XDP program that numbers each frame and passes it to the host. Returns the program, or -errno. */
static int load_numbering(void)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
	int counter = bpf(BPF_MAP_CREATE, &map);
	const struct bpf_insn code[] = {
		/* r7 = data; a shorter frame passes unchanged */
		{BPF_LDX | BPF_MEM | BPF_W, 7, 1, offsetof(struct xdp_md, data), 0},
		{BPF_LDX | BPF_MEM | BPF_W, 3, 1, offsetof(struct xdp_md, data_end), 0},
		{BPF_ALU64 | BPF_MOV | BPF_X, 4, 7, 0, 0},
		{BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, FRAME_BYTES},
		{BPF_JMP | BPF_JGT | BPF_X, 4, 3, 6, 0},
		/* card_seq = counter++ */
		{BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, counter},
		{0, 0, 0, 0, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1},
		{BPF_STX | BPF_DW | BPF_ATOMIC, 1, 0, 0, BPF_ADD | BPF_FETCH},
		{BPF_ALU | BPF_END | BPF_TO_BE, 0, 0, 0, 32},
		{BPF_STX | BPF_MEM | BPF_W, 7, 0, SEQ_AT, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	union bpf_attr program = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t)"GPL",
	};

	return counter < 0 ? counter : bpf(BPF_PROG_LOAD, &program);
}

static void put_headers(struct sender *sender, const struct ifreq *mac)
{
	struct ethhdr *ethernet = (struct ethhdr *)sender->frame;
	struct iphdr *ip = (struct iphdr *)(ethernet + 1);
	struct udphdr *udp = (struct udphdr *)(ip + 1);
	const struct sockaddr_in *to = (const struct sockaddr_in *)&sender->to.storage;
	const uint16_t *words = (const uint16_t *)ip;
	uint32_t sum = 0;

	memcpy(ethernet->h_dest, mac->ifr_hwaddr.sa_data, ETH_ALEN);
	ethernet->h_source[0] = 2; /* locally administered */
	ethernet->h_proto = htons(ETH_P_IP);
	*ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
	ip->tot_len = htons(FRAME_BYTES - sizeof(*ethernet));
	ip->saddr = ((const struct sockaddr_in *)&sender->from.storage)->sin_addr.s_addr;
	ip->daddr = to->sin_addr.s_addr;
	for (size_t index = 0; index < sizeof(*ip) / sizeof(*words); index++)
		sum += words[index];
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = (uint16_t)~(sum + (sum >> 16));
	*udp = (struct udphdr){.source = htons((uint16_t)(FIRST_SOURCE_PORT + sender->switch_id)),
			       .dest = to->sin_port,
			       .len = htons(sizeof(*udp) + POSTCARD_BYTES)};
}

static int open_interface(struct sender *sender)
{
	struct ifreq mac = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : 0;

	strcpy(mac.ifr_name, sender->interface);
	if (!err && ioctl(fd, SIOCGIFHWADDR, &mac))
		err = -errno;
	if (fd >= 0)
		close(fd);
	sender->ifindex = if_nametoindex(sender->interface);
	put_headers(sender, &mac);
	sender->fd = err ? err : load_numbering();
	if (sender->fd < 0)
		complain("preparing to send into %s: %s", sender->interface, strerror(-sender->fd));
	return sender->fd < 0 ? sender->fd : 0;
}

/* Returns 0, or -errno after one line. */
static int run_frames(struct sender *sender, unsigned int count, uint64_t enqueue_ns)
{
	struct xdp_md context = {.data_end = FRAME_BYTES, .ingress_ifindex = sender->ifindex};
	union bpf_attr run = {0};
	int err;

	sample_encode(sender->frame + HEADER_BYTES, (uint16_t)sender->switch_id, 0, enqueue_ns);
	run.test.prog_fd = (uint32_t)sender->fd;
	run.test.data_in = (uintptr_t)sender->frame;
	run.test.data_size_in = FRAME_BYTES;
	run.test.ctx_in = (uintptr_t)&context;
	run.test.ctx_size_in = sizeof(context);
	run.test.repeat = count;
	run.test.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
	err = bpf(BPF_PROG_TEST_RUN, &run);
	if (err)
		complain("sending into %s: %s", sender->interface, strerror(-err));
	sender->sent += err ? 0 : count;
	return err;
}

static int open_sender(struct sender *sender)
{
	const struct address *to = &sender->to;
	int err;

	if (sender->interface)
		return open_interface(sender);
	sender->fd = socket(to->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sender->fd < 0 || connect(sender->fd, (const struct sockaddr *)&to->storage, to->length)) {
		err = -errno;
		complain("preparing to send to %s: %s", to->text, strerror(-err));
		if (sender->fd >= 0)
			close(sender->fd);
		return err;
	}
	for (unsigned int index = 0; index < MAX_BATCH; index++) {
		uint8_t *card = sender->cards + index * POSTCARD_BYTES;

		sample_encode(card, (uint16_t)sender->switch_id, 0, 0);
		sender->iov[index] = (struct iovec){card, POSTCARD_BYTES};
		sender->messages[index].msg_hdr.msg_iov = &sender->iov[index];
		sender->messages[index].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

static int send_batch(struct sender *sender, unsigned int count)
{
	unsigned int done = 0, in_a_row = 0;
	int sent;

	while (done < count) {
		sent = sendmmsg(sender->fd, sender->messages + done, count - done, 0);
		sent = sent < 0 ? -errno : sent;
		if (sent > 0) {
			done += (unsigned int)sent;
			sender->sent += (unsigned int)sent;
			in_a_row = 0;
		} else if ((sent == -ENOBUFS || sent == -EAGAIN || sent == -EINTR) &&
			   in_a_row++ < RETRIES_IN_A_ROW) {
			sender->retries++;
			sleep_until(mono_now_ns() + RETRY_NS);
		} else {
			complain("sending to %s: %s%s", sender->to.text, strerror(-sent),
				 sent == -ECONNREFUSED ? "; nothing listens there: start the collector first"
						       : "");
			return sent;
		}
	}
	return 0;
}

static uint64_t batch_of(const struct sender *sender)
{
	uint64_t most = sender->interface ? MAX_RUN : MAX_BATCH;
	uint64_t paced = sender->rate_per_s / (sender->interface ? RUNS_PER_S : 1000000000 / PACE_NS);

	return !sender->rate_per_s || paced > most ? most : paced ? paced : 1;
}

/* Returns 0, or -errno after one line; sender->sent then has the datagrams sent so far. */
static int send_all(struct sender *sender, uint64_t start_ns)
{
	uint64_t batch = batch_of(sender), moment_ns, left;
	int err = 0;

	while (!err && sender->sent < sender->count) {
		if (sender->rate_per_s)
			sleep_until(start_ns +
				    (uint64_t)((double)sender->sent * 1e9 / (double)sender->rate_per_s));
		left = sender->count - sender->sent;
		left = left < batch ? left : batch;
		moment_ns = mono_now_ns();
		if (sender->interface) {
			err = run_frames(sender, (unsigned int)left, moment_ns);
			continue;
		}
		for (unsigned int index = 0; index < left; index++)
			sample_renumber(sender->cards + index * POSTCARD_BYTES,
					(uint32_t)(sender->sent + index), moment_ns);
		err = send_batch(sender, (unsigned int)left);
	}
	return err;
}

int main(int argc, char **argv)
{
	static struct sender sender;
	int err = parse(&sender, argc, argv);
	uint64_t start_ns;
	double seconds;

	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	if (open_sender(&sender))
		return EXIT_INCOMPLETE;
	start_ns = mono_now_ns();
	err = send_all(&sender, start_ns);
	seconds = (double)(mono_now_ns() - start_ns) * 1e-9;
	close(sender.fd);
	printf("{\"sent\": %" PRIu64 ", \"retries\": %" PRIu64
	       ", \"seconds\": %.6f, \"postcards_per_s\": %.0f}\n",
	       sender.sent, sender.retries, seconds, (double)sender.sent / seconds);
	return err ? EXIT_INCOMPLETE : EXIT_SUCCESS;
}
