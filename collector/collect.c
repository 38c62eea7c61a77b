// SPDX-License-Identifier: MIT
// The receive loop. The kernel stamps each datagram, so the loop need not read it at once. While datagrams arrive, the
// loop sleeps 1 to 8 ms after it has emptied the socket: the sender need not wake up the collector for each datagram.
#include "collect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock_ns.h"
#include "lib/privileges.h"
#include "lib/report.h"

enum {
	ROUND_BATCHES = 64,	   /* between two checks of clock, block age and signals */
	NAP_NS = 1000000,	   /* 1 ms; the default socket buffer holds hundreds of ms */
	LONG_NAP_NS = 8000000,	   /* less than CLOCK_SAMPLE_NS, the interval between samples of the clock */
	LONG_NAP_BYTES = 64 << 20, /* least socket buffer for long naps: holds 8 of them at 1 M datagrams/s */
	NAP_DATAGRAMS = 512,	   /* if fewer arrive in a nap, the next is longer */
	WAIT_NS = 100000000,	   /* longest sleep on an idle socket; bounds the age of a partial block */
	IDLE_WAIT_NS = 1000000000, /* the same without a partial block */
	BLOCK_AGE_NS = 500000000,  /* half of the 1 s within which a partial block must be written */
	CLOCK_SAMPLE_NS = 10000000, /* after a step, stamps since the previous sample are in doubt */
};

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal)
{
	(void)signal;
	stop_requested = 1;
}

static void take_signals(struct collector *collector)
{
	const struct sigaction stop = {.sa_handler = request_stop};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &blocked, &collector->wait_mask);
	sigdelset(&collector->wait_mask, SIGINT);
	sigdelset(&collector->wait_mask, SIGTERM);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	/* The run must not end when the reader of the status lines exits. */
	sigaction(SIGPIPE, &ignore, NULL);
}

int collector_open(struct collector *collector, const struct options *options)
{
	int err;

	*collector = (struct collector){.options = options};
	take_signals(collector);
	clock_offset_open(&collector->clock);
	collector->intake.sequences = calloc(1, sizeof(*collector->intake.sequences));
	if (!collector->intake.sequences) {
		complain("allocating the sequence tracker: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	err = receiver_open(&collector->receiver, &options->listen, &options->source,
			    options->receive_buffer_bytes);
	if (err)
		goto fail_sequences;
	err = drop_privileges(options->summary); /* the writer is a thread */
	if (err)
		goto fail_receiver;
	err = writer_open(&collector->writer, options->output, (unsigned int)options->buffers);
	if (err)
		goto fail_receiver;
	losses_read(&collector->losses);
	collector->now_ns = mono_now_ns();
	status_open(&collector->status, options->status, options->status_ms, collector->now_ns);
	return 0;

fail_receiver:
	receiver_close(&collector->receiver);
fail_sequences:
	free(collector->intake.sequences);
	return err;
}

/* Gives the current block to the writer, which frees it if it is empty. */
static void seal(struct collector *collector)
{
	struct block *block = collector->block;

	if (!block)
		return;
	block->first_record = collector->records;
	block->kernel_drops = collector->receiver.kernel_drops;
	collector->records += block->records;
	collector->block = NULL;
	writer_give(&collector->writer, block);
}

static bool have_block(struct collector *collector)
{
	struct block *block = collector->block;

	if (!block) {
		block = collector->block = writer_take(&collector->writer);
		collector->stalls += !block && !collector->stalled;
		collector->stalled = !block;
	}
	if (block && !block->records) {
		block->opened_mono_ns = collector->now_ns;
		block->realtime_minus_mono_ns = collector->clock.realtime_minus_mono_ns;
	}
	return block;
}

static void count_error(struct collector *collector, int err)
{
	if (!collector->receive_errors++)
		complain("receiving on %s: %s; the collector goes on, and only counts further errors",
			 collector->options->listen.text, strerror(-err));
}

/* Receives without storing. Its rate is an upper bound for every collector on this socket. */
static int discard_batch(struct collector *collector)
{
	uint64_t strangers_before = collector->receiver.strangers;
	int count = receiver_take(&collector->receiver, collector->block->bytes, RECORD_BYTES, POSTCARD_BYTES,
				  SOCKET_BATCH);

	if (count <= 0)
		return count;
	if (!collector->intake.received)
		collector->intake.first_rx_mono_ns = mono_now_ns();
	collector->intake.last_rx_mono_ns = collector->now_ns;
	collector->intake.received +=
		(unsigned int)count - (collector->receiver.strangers - strangers_before);
	return count;
}

static int store_batch(struct collector *collector)
{
	struct block *block = collector->block;
	unsigned int room = BLOCK_RECORDS - block->records;
	uint8_t *records = block_place(block);
	int count = receiver_take(&collector->receiver, records + BLOCK_STAMP_BYTES, RECORD_BYTES,
				  POSTCARD_BYTES, room < SOCKET_BATCH ? room : SOCKET_BATCH);

	if (count <= 0)
		return count;
	block->records += intake_batch(&collector->intake, records, collector->receiver.arrivals,
				       (unsigned int)count, block->realtime_minus_mono_ns);
	if (block->records == BLOCK_RECORDS)
		seal(collector);
	return count;
}

/* Returns the number of datagrams taken. 0: none is waiting, receiving failed, or no buffer is free (then block is
 * NULL).
 */
static int take_batch(struct collector *collector)
{
	int count;

	if (!have_block(collector))
		return 0;
	count = collector->options->discard ? discard_batch(collector) : store_batch(collector);
	if (count >= 0)
		return count;
	count_error(collector, count);
	return 0;
}

/* Takes at most ROUND_BATCHES batches; *taken becomes their number of datagrams. True: more may be waiting. */
static bool take_round(struct collector *collector, int *taken)
{
	*taken = 0;
	for (int batch = 0; batch < ROUND_BATCHES; batch++) {
		int count = take_batch(collector);

		if (!count)
			return false;
		*taken += count;
		if (count < SOCKET_BATCH && collector->block)
			return false; /* this batch emptied the socket */
	}
	return true;
}

/* The periodic work: clock offset, age of the block, status line. */
static void attend(struct collector *collector)
{
	collector->now_ns = mono_now_ns();
	if (collector->now_ns - collector->sampled_ns >= CLOCK_SAMPLE_NS) {
		collector->sampled_ns = collector->now_ns;
		if (clock_offset_sample(&collector->clock))
			seal(collector); /* a block has a single offset */
	}
	if (collector->block && collector->block->records &&
	    collector->now_ns - collector->block->opened_mono_ns >= BLOCK_AGE_NS)
		seal(collector);
	if (status_is_due(&collector->status, collector->intake.received, collector->now_ns))
		status_show(collector);
}

/* Sleeps with signals enabled. A signal ends the sleep, and with watch_socket a datagram does. */
static void sleep_for(struct collector *collector, long nanoseconds, bool watch_socket)
{
	const struct timespec timeout = {.tv_sec = nanoseconds / 1000000000,
					 .tv_nsec = nanoseconds % 1000000000};
	struct pollfd socket = {.fd = collector->receiver.fd, .events = POLLIN};

	ppoll(&socket, watch_socket, &timeout, &collector->wait_mask);
}

/* Empties the socket until a batch ends in a datagram that arrived after the signal, so a sender that continues cannot
 * delay the end.
 */
static void drain(struct collector *collector)
{
	uint64_t stop_ns = mono_now_ns();
	const struct arrival *last;
	int count;

	for (;;) {
		count = take_batch(collector);
		if (!count && !collector->block) {
			sleep_for(collector, NAP_NS, false);
			continue;
		}
		if (!count)
			return;
		last = &collector->receiver.arrivals[count - 1];
		if (last->realtime_ns - collector->clock.realtime_minus_mono_ns > (int64_t)stop_ns)
			return;
	}
}

/* The next nap: longer if the last round took few datagrams, because each nap costs some system calls. */
static long next_nap_ns(const struct collector *collector, long nap_ns, int taken)
{
	if (collector->receiver.buffer_bytes < LONG_NAP_BYTES)
		return NAP_NS;
	if (taken < NAP_DATAGRAMS)
		return 2 * nap_ns < LONG_NAP_NS ? 2 * nap_ns : LONG_NAP_NS;
	if (taken > 4 * NAP_DATAGRAMS)
		return nap_ns / 2 > NAP_NS ? nap_ns / 2 : NAP_NS;
	return nap_ns;
}

void collector_run(struct collector *collector)
{
	long nap_ns = NAP_NS;
	bool more;
	int taken;

	while (!stop_requested) {
		more = take_round(collector, &taken);
		attend(collector);
		if (more) {
			sleep_for(collector, 0, false);
		} else if (taken || !collector->block) {
			sleep_for(collector, nap_ns, false);
			nap_ns = next_nap_ns(collector, nap_ns, taken);
		} else {
			nap_ns = NAP_NS;
			sleep_for(collector, collector->block->records ? WAIT_NS : IDLE_WAIT_NS, true);
		}
	}
	drain(collector);
}

int collector_close(struct collector *collector)
{
	int err;

	clock_offset_sample(&collector->clock);
	receiver_kernel_drops(&collector->receiver);
	collector->losses = losses_since(&collector->losses);
	seal(collector);
	receiver_close(&collector->receiver);
	err = writer_close(&collector->writer);
	if (collector->receive_errors && !err)
		err = -EIO;
	return err;
}
