// SPDX-License-Identifier: MIT
// The sending loop. Rates of one core over veth: UDP_SEGMENT 1.8 M/s, AF_PACKET sendmmsg without a qdisc 1.1 M/s, UDP
// sendmmsg 1.0 M/s, AF_PACKET transmit ring 0.96 M/s. The generator uses the two methods that need neither privileges
// nor MAC addresses.
#include "generator.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/report.h"
#include "sample.h"
#include "wire/postcard.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* include/uapi/linux/udp.h, since Linux 4.18 */
#endif

enum {
	RETRY_NS = 100000,
	RETRIES_IN_A_ROW = 100000, /* 10 s without room: give up */
	PACE_NS = 1000000,	   /* at a given rate, the longest time for a batch */
};

struct sender {
	int fd;
	uint8_t cards[GENERATOR_MAX_BATCH * POSTCARD_BYTES];
	struct mmsghdr messages[GENERATOR_MAX_BATCH];
	struct iovec iov[GENERATOR_MAX_BATCH];
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t mono_ns)
{
	const struct timespec when = {.tv_sec = (time_t)(mono_ns / 1000000000u),
				      .tv_nsec = (long)(mono_ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

static int open_sender(struct sender *sender, const struct order *order)
{
	const struct address *to = &order->to, *source = &order->source;
	int err;

	sender->fd = socket(to->storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sender->fd < 0 ||
	    (source->length && bind(sender->fd, (const struct sockaddr *)&source->storage, source->length)) ||
	    connect(sender->fd, (const struct sockaddr *)&to->storage, to->length)) {
		err = -errno;
		complain("preparing to send to %s%s%s: %s", to->text, source->length ? " from " : "",
			 source->text, strerror(-err));
		if (sender->fd >= 0)
			close(sender->fd);
		return err;
	}
	for (unsigned int index = 0; index < GENERATOR_MAX_BATCH; index++) {
		uint8_t *card = sender->cards + index * POSTCARD_BYTES;

		sample_encode(card, 0, 0);
		sender->iov[index] = (struct iovec){card, POSTCARD_BYTES};
		sender->messages[index].msg_hdr.msg_iov = &sender->iov[index];
		sender->messages[index].msg_hdr.msg_iovlen = 1;
	}
	return 0;
}

static int use_segments(struct sender *sender, bool on)
{
	int bytes = on ? POSTCARD_BYTES : 0;

	return setsockopt(sender->fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof(bytes)) ? -errno : 0;
}

/* Returns the number of datagrams sent, or -errno. */
static int send_some(struct sender *sender, enum method method, unsigned int from, unsigned int count)
{
	const uint8_t *cards = sender->cards + from * POSTCARD_BYTES;
	ssize_t sent;

	if (method == METHOD_SEGMENT) {
		sent = send(sender->fd, cards, count * POSTCARD_BYTES, 0);
		return sent < 0 ? -errno : (int)count;
	}
	sent = sendmmsg(sender->fd, sender->messages + from, count, 0);
	return sent < 0 ? -errno : (int)sent;
}

/* Only the first send shows whether UDP_SEGMENT works: before Linux 6.11 it needs checksum offload. */
static bool falls_back(struct sender *sender, const struct order *order, struct delivery *delivery, int err)
{
	if (order->method != METHOD_AUTO || delivery->method != METHOD_SEGMENT || delivery->sent ||
	    (err != -EIO && err != -EINVAL))
		return false;
	delivery->method = METHOD_SENDMMSG;
	use_segments(sender, false);
	return true;
}

static int send_batch(struct sender *sender, const struct order *order, struct delivery *delivery,
		      unsigned int count)
{
	unsigned int done = 0, in_a_row = 0;
	int sent;

	while (done < count) {
		sent = send_some(sender, delivery->method, done, count - done);
		if (sent > 0) {
			done += (unsigned int)sent;
			delivery->sent += (unsigned int)sent;
			in_a_row = 0;
			continue;
		}
		if (falls_back(sender, order, delivery, sent))
			continue;
		if ((sent == -ENOBUFS || sent == -EAGAIN || sent == -EINTR) &&
		    in_a_row++ < RETRIES_IN_A_ROW) {
			delivery->retries++;
			sleep_until(now_ns() + RETRY_NS);
			continue;
		}
		complain("sending to %s: %s%s", order->to.text, strerror(-sent),
			 sent == -ECONNREFUSED ? "; nothing listens there: start the collector first" : "");
		return sent;
	}
	return 0;
}

static unsigned int batch_of(const struct order *order)
{
	uint64_t paced = order->rate_per_s / (1000000000 / PACE_NS);

	if (order->rate_per_s && paced < order->batch)
		return paced ? (unsigned int)paced : 1;
	return (unsigned int)order->batch;
}

int generator_send(const struct order *order, struct delivery *delivery)
{
	static struct sender sender;
	unsigned int batch = batch_of(order);
	uint64_t start_ns, moment_ns, left;
	unsigned int here;
	int err;

	*delivery = (struct delivery){.method = order->method};
	err = open_sender(&sender, order);
	if (err)
		return err;
	if (order->method != METHOD_SENDMMSG) {
		err = use_segments(&sender, true);
		if (err && order->method == METHOD_SEGMENT) {
			complain("--method segment: %s: this kernel has no UDP_SEGMENT; use sendmmsg",
				 strerror(-err));
			goto out;
		}
		delivery->method = err ? METHOD_SENDMMSG : METHOD_SEGMENT;
	}

	start_ns = now_ns();
	do {
		if (order->rate_per_s)
			sleep_until(start_ns +
				    (uint64_t)((double)delivery->sent * 1e9 / (double)order->rate_per_s));
		left = order->count - delivery->sent;
		here = left < batch ? (unsigned int)left : batch;
		moment_ns = now_ns();
		for (unsigned int index = 0; index < here; index++)
			sample_renumber(sender.cards + index * POSTCARD_BYTES,
					(uint32_t)(order->first_seq + delivery->sent + index), moment_ns);
		err = send_batch(&sender, order, delivery, here);
	} while (!err && delivery->sent < order->count);
	delivery->elapsed_ns = now_ns() - start_ns;
out:
	close(sender.fd);
	return err;
}
