// SPDX-License-Identifier: MIT
// Sends sample postcards, for tests and to measure collectors: at the full speed of one core, or at a given rate.
//
// Rates of one core over veth: UDP_SEGMENT 1.8 M/s, AF_PACKET sendmmsg without a qdisc 1.1 M/s, UDP sendmmsg 1.0 M/s,
// AF_PACKET transmit ring 0.96 M/s. The generator uses UDP_SEGMENT (a batch passes the stack once, the device splits it
// into datagrams) if the kernel can, else sendmmsg: neither needs privileges or MAC addresses.
#include <errno.h>
#include <inttypes.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "lib/clock_ns.h"
#include "lib/options.h"
#include "lib/report.h"
#include "wire/postcard.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* include/uapi/linux/udp.h, since Linux 4.18 */
#endif

enum {
	MAX_BATCH = 64, /* segments per send that every kernel with UDP_SEGMENT accepts */
	RETRY_NS = 100000,
	RETRIES_IN_A_ROW = 100000, /* 10 s without room: give up */
	PACE_NS = 1000000,	   /* at a given rate, the longest time for a batch */
};

const char *const program_name = "postcard_generator";

static const char help_text[] = "postcard_generator --to ADDRESS:PORT --count N [--rate R]\n"
				"\n"
				"Sends N correct postcards with consecutive numbers, at most R per second "
				"(default: unlimited), and prints its\n"
				"result as a JSON object.\n";

struct sender {
	struct address to;
	uint64_t count;
	uint64_t rate_per_s; /* 0: unlimited */
	uint64_t sent;
	uint64_t retries; /* sends repeated because the kernel had no room */
	int fd;
	bool by_segment;
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
static void sample_encode(uint8_t *buffer, uint32_t card_seq, uint64_t enqueue_ns)
{
	const struct postcard card = {
		.version = POSTCARD_VERSION,
		.flags = POSTCARD_HAS_IP | POSTCARD_HAS_PORTS | POSTCARD_HAS_TCP,
		.switch_id = 1,
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
		OPTIONS_END,
	};
	int err = options_read(rows, help_text, argc, argv);

	if (!err && !sender->to.length) {
		complain("--to %s: give an address, too", sender->to.text);
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

static bool use_segments(struct sender *sender, bool on)
{
	int bytes = on ? POSTCARD_BYTES : 0;

	return !setsockopt(sender->fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof(bytes)) && on;
}

static int open_sender(struct sender *sender)
{
	const struct address *to = &sender->to;
	int err;

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

		sample_encode(card, 0, 0);
		sender->iov[index] = (struct iovec){card, POSTCARD_BYTES};
		sender->messages[index].msg_hdr.msg_iov = &sender->iov[index];
		sender->messages[index].msg_hdr.msg_iovlen = 1;
	}
	sender->by_segment = use_segments(sender, true);
	return 0;
}

/* Returns the number of datagrams sent, or -errno. */
static int send_some(struct sender *sender, unsigned int from, unsigned int count)
{
	ssize_t sent;

	if (sender->by_segment) {
		sent = send(sender->fd, sender->cards + from * POSTCARD_BYTES, count * POSTCARD_BYTES, 0);
		return sent < 0 ? -errno : (int)count;
	}
	sent = sendmmsg(sender->fd, sender->messages + from, count, 0);
	return sent < 0 ? -errno : (int)sent;
}

static int send_batch(struct sender *sender, unsigned int count)
{
	unsigned int done = 0, in_a_row = 0;
	int sent;

	while (done < count) {
		sent = send_some(sender, done, count - done);
		if (sent > 0) {
			done += (unsigned int)sent;
			sender->sent += (unsigned int)sent;
			in_a_row = 0;
		} else if (sender->by_segment && !sender->sent && (sent == -EIO || sent == -EINVAL)) {
			/* Only the first send shows whether it works: before Linux 6.11 it needs checksum offload. */
			sender->by_segment = use_segments(sender, false);
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

static uint64_t batch_of(uint64_t rate_per_s)
{
	uint64_t paced = rate_per_s / (1000000000 / PACE_NS);

	return !rate_per_s || paced > MAX_BATCH ? MAX_BATCH : paced ? paced : 1;
}

/* Returns 0, or -errno after one line; sender->sent then has the datagrams sent so far. */
static int send_all(struct sender *sender, uint64_t start_ns)
{
	uint64_t batch = batch_of(sender->rate_per_s), moment_ns, left;
	int err = 0;

	while (!err && sender->sent < sender->count) {
		if (sender->rate_per_s)
			sleep_until(start_ns +
				    (uint64_t)((double)sender->sent * 1e9 / (double)sender->rate_per_s));
		left = sender->count - sender->sent;
		left = left < batch ? left : batch;
		moment_ns = mono_now_ns();
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
	       ", \"seconds\": %.6f, \"postcards_per_s\": %.0f, "
	       "\"method\": \"%s\"}\n",
	       sender.sent, sender.retries, seconds, (double)sender.sent / seconds,
	       sender.by_segment ? "segment" : "sendmmsg");
	return err ? EXIT_INCOMPLETE : EXIT_SUCCESS;
}
