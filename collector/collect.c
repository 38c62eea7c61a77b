// SPDX-License-Identifier: MIT
// The receive loop, which every worker runs. The kernel stamps each datagram, so the loop need not read it at once.
// While datagrams arrive, the loop sleeps 1 to 8 ms after it has emptied its buffer: the sender need not wake up the
// collector for each datagram.
#include "collect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
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
	IDLE_WAIT_NS =
		1000000000, /* the same without a partial block; other threads see the end of the run sooner */
	BLOCK_AGE_NS = 500000000,   /* half of the 1 s within which a partial block must be written */
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

static void close_receivers(struct collector *collector)
{
	for (unsigned int number = 0; number < collector->worker_count; number++)
		receiver_close(&collector->workers[number].receiver);
}

static int open_workers(struct collector *collector)
{
	const struct options *options = collector->options;
	struct worker *worker;
	int err;

	for (; collector->worker_count < options->receivers; collector->worker_count++) {
		worker = &collector->workers[collector->worker_count];
		worker->collector = collector;
		worker->intake.sequences = collector->sequences;
		clock_offset_open(&worker->clock);
		err = receiver_open(&worker->receiver,
				    collector->worker_count ? &collector->workers->receiver : NULL, options);
		if (err)
			return err;
		worker->now_ns = mono_now_ns();
	}
	return 0;
}

int collector_open(struct collector *collector, const struct options *options)
{
	int err;

	*collector = (struct collector){.options = options};
	take_signals(collector);
	collector->sequences = calloc(1, sizeof(*collector->sequences));
	if (!collector->sequences) {
		complain("allocating the sequence tracker: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	err = open_workers(collector);
	if (!err)
		err = drop_privileges(options->summary); /* before the threads start */
	if (!err)
		err = writer_open(&collector->writer, options->output,
				  (unsigned int)(options->buffers * options->receivers));
	if (err) {
		close_receivers(collector);
		free(collector->sequences);
		return err;
	}
	losses_read(&collector->losses);
	status_open(&collector->status, options->status, options->status_ms, mono_now_ns());
	return 0;
}

uint64_t collector_total(const struct collector *collector, size_t field_offset)
{
	uint64_t total = 0;

	for (unsigned int number = 0; number < collector->worker_count; number++)
		total += __atomic_load_n(
			(const uint64_t *)((const char *)&collector->workers[number] + field_offset),
			__ATOMIC_RELAXED);
	return total;
}

/* Gives the current block to the writer, which frees it if it is empty. */
static void seal(struct worker *worker)
{
	struct block *block = worker->block;

	if (!block)
		return;
	if (block->records) {
		receiver_kernel_drops(&worker->receiver);
		block->kernel_drops = worker->receiver.kernel_drops - worker->told_drops;
		worker->told_drops = worker->receiver.kernel_drops;
	}
	worker->block = NULL;
	writer_give(&worker->collector->writer, block);
}

static bool have_block(struct worker *worker)
{
	struct block *block = worker->block;

	if (!block) {
		block = worker->block = writer_take(&worker->collector->writer);
		worker->stalls += !block && !worker->stalled;
		worker->stalled = !block;
	}
	if (block && !block->records) {
		block->opened_mono_ns = worker->now_ns;
		block->realtime_minus_mono_ns = worker->clock.realtime_minus_mono_ns;
	}
	return block;
}

static void count_error(struct worker *worker, int err)
{
	if (!worker->receive_errors++)
		complain("receiving on %s: %s; the collector goes on, and only counts further errors",
			 worker->collector->options->listen.text, strerror(-err));
}

/* Receives without storing. Its rate is an upper bound for every collector on this socket. */
static int discard_batch(struct worker *worker)
{
	uint64_t strangers_before = worker->receiver.strangers;
	int count = receiver_take(&worker->receiver, worker->block->bytes, RECORD_BYTES, POSTCARD_BYTES,
				  SOCKET_BATCH);

	if (count <= 0)
		return count;
	if (!worker->intake.received)
		worker->intake.first_rx_mono_ns = mono_now_ns();
	worker->intake.last_rx_mono_ns = worker->now_ns;
	worker->intake.received += (unsigned int)count - (worker->receiver.strangers - strangers_before);
	return count;
}

static int store_batch(struct worker *worker)
{
	struct block *block = worker->block;
	unsigned int room = BLOCK_RECORDS - block->records;
	uint8_t *records = block_place(block);
	int count = receiver_take(&worker->receiver, records + BLOCK_STAMP_BYTES, RECORD_BYTES,
				  POSTCARD_BYTES, room < SOCKET_BATCH ? room : SOCKET_BATCH);

	if (count <= 0)
		return count;
	block->records += intake_batch(&worker->intake, records, worker->receiver.arrivals,
				       (unsigned int)count, block->realtime_minus_mono_ns);
	if (block->records == BLOCK_RECORDS)
		seal(worker);
	return count;
}

/* Returns the number of datagrams taken. 0: none is waiting, receiving failed, or no buffer is free (then block is
 * NULL).
 */
static int take_batch(struct worker *worker)
{
	int count;

	if (!have_block(worker))
		return 0;
	count = worker->collector->options->discard ? discard_batch(worker) : store_batch(worker);
	if (count >= 0)
		return count;
	count_error(worker, count);
	return 0;
}

/* Takes at most ROUND_BATCHES batches; *taken becomes their number of datagrams. True: more may be waiting. */
static bool take_round(struct worker *worker, int *taken)
{
	*taken = 0;
	for (int batch = 0; batch < ROUND_BATCHES; batch++) {
		int count = take_batch(worker);

		if (!count)
			return false;
		*taken += count;
		if (count < SOCKET_BATCH && worker->block)
			return false; /* this batch emptied the socket */
	}
	return true;
}

/* The periodic work: clock offset, age of the block. */
static void attend(struct worker *worker)
{
	worker->now_ns = mono_now_ns();
	if (worker->now_ns - worker->sampled_ns >= CLOCK_SAMPLE_NS) {
		worker->sampled_ns = worker->now_ns;
		if (clock_offset_sample(&worker->clock))
			seal(worker); /* a block has a single offset */
	}
	if (worker->block && worker->block->records &&
	    worker->now_ns - worker->block->opened_mono_ns >= BLOCK_AGE_NS)
		seal(worker);
}

static void attend_status(struct collector *collector)
{
	uint64_t received = collector_total(collector, offsetof(struct worker, intake.received));
	uint64_t now_ns = collector->workers->now_ns;

	if (status_is_due(&collector->status, received, now_ns))
		status_show(collector, received, now_ns);
}

static bool is_main(const struct worker *worker)
{
	return worker == worker->collector->workers;
}

/* Sleeps; the main thread with signals enabled. A signal ends its sleep, and with watch_socket a datagram does. */
static void sleep_for(struct worker *worker, long nanoseconds, bool watch_socket)
{
	const struct timespec timeout = {.tv_sec = nanoseconds / 1000000000,
					 .tv_nsec = nanoseconds % 1000000000};
	struct pollfd socket = {.fd = worker->receiver.fd, .events = POLLIN};

	ppoll(&socket, watch_socket, &timeout, is_main(worker) ? &worker->collector->wait_mask : NULL);
}

/* Empties the socket until a batch ends in a datagram that arrived after the signal, so a sender that continues cannot
 * delay the end.
 */
static void drain(struct worker *worker)
{
	uint64_t stop_ns = mono_now_ns();
	const struct arrival *last;
	int count;

	for (;;) {
		count = take_batch(worker);
		if (!count && !worker->block) {
			sleep_for(worker, NAP_NS, false);
			continue;
		}
		if (!count)
			return;
		last = &worker->receiver.arrivals[count - 1];
		if (last->realtime_ns - worker->clock.realtime_minus_mono_ns > (int64_t)stop_ns)
			return;
	}
}

/* The next nap: longer if the last round took few datagrams, because each nap costs some system calls. */
static long next_nap_ns(const struct worker *worker, long nap_ns, int taken)
{
	if (worker->receiver.buffer_bytes < LONG_NAP_BYTES)
		return NAP_NS;
	if (taken < NAP_DATAGRAMS)
		return 2 * nap_ns < LONG_NAP_NS ? 2 * nap_ns : LONG_NAP_NS;
	if (taken > 4 * NAP_DATAGRAMS)
		return nap_ns / 2 > NAP_NS ? nap_ns / 2 : NAP_NS;
	return nap_ns;
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;
	long nap_ns = NAP_NS;
	bool more;
	int taken;

	while (!stop_requested) {
		more = take_round(worker, &taken);
		attend(worker);
		if (is_main(worker))
			attend_status(worker->collector);
		if (more) {
			sleep_for(worker, 0, false);
		} else if (taken || !worker->block) {
			sleep_for(worker, nap_ns, false);
			nap_ns = next_nap_ns(worker, nap_ns, taken);
		} else {
			nap_ns = NAP_NS;
			sleep_for(worker, is_main(worker) && !worker->block->records ? IDLE_WAIT_NS : WAIT_NS,
				  true);
		}
	}
	drain(worker);
	clock_offset_sample(&worker->clock);
	receiver_kernel_drops(&worker->receiver);
	seal(worker);
	return NULL;
}

void collector_run(struct collector *collector)
{
	struct worker *workers = collector->workers;
	unsigned int started = 1;
	int err = 0;

	for (; started < collector->worker_count && !err; started += !err) {
		err = pthread_create(&workers[started].thread, NULL, run_worker, &workers[started]);
		if (err) {
			complain("starting receiver %u: %s", started, strerror(err));
			workers->receive_errors++;
			stop_requested = 1; /* else its share of the postcards would be lost in silence */
		}
	}
	run_worker(workers);
	while (--started)
		pthread_join(workers[started].thread, NULL);
}

int collector_close(struct collector *collector)
{
	int err;

	collector->losses = losses_since(&collector->losses);
	close_receivers(collector);
	err = writer_close(&collector->writer);
	if (collector_total(collector, offsetof(struct worker, receive_errors)) && !err)
		err = -EIO;
	return err;
}
