/* SPDX-License-Identifier: MIT
 * The headers of all frames at some ports as captures (pcap, ns of CLOCK_REALTIME), one file a port: each frame as it
 * comes to the port, and as its last bit leaves the port's queue, at the core's exact times. The loop copies headers into
 * chunks of memory, and a thread writes full chunks, so a slow disk delays no frame. While all chunks are full, frames are
 * lost, and counted, as are those of a chunk that could not be written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "../runtime/pcap.h"
#include "shell.h"

enum {
	CHUNK_BYTES = 1 << 20,
	CHUNKS = 32, /* of each tap */
	WRITER_NICE = 5,
};

struct tap {
	const char *path;
	uint16_t port;
	int fd; /* -1: an error occurred, and nothing more is written */
	uint8_t *chunks;
	uint32_t used;	 /* bytes of the chunk that the loop fills, which is number `filled` */
	uint32_t frames; /* in it */
	uint32_t bytes_of[CHUNKS], frames_of[CHUNKS];
	uint64_t filled, written; /* chunks; guarded by the lock, but only the loop changes `filled` */
	uint64_t frames_full;	  /* frames that found no free chunk; of the loop */
	uint64_t frames_written, frames_failed; /* guarded by the lock */
};

static struct {
	struct tap taps[OPTIONS_MAX_TAPS];
	uint32_t count;
	int64_t realtime_minus_mono_ns; /* at the start: the captures have the core's clock, whatever CLOCK_REALTIME does */
	pthread_t writer;
	bool has_writer, stop;
	pthread_mutex_t lock;
	pthread_cond_t is_filled, is_written;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
	 .is_filled = PTHREAD_COND_INITIALIZER,
	 .is_written = PTHREAD_COND_INITIALIZER};

static void put(struct tap *tap, const void *bytes, uint32_t length)
{
	memcpy(tap->chunks + tap->filled % CHUNKS * CHUNK_BYTES + tap->used, bytes, length);
	tap->used += length;
}

static void hand_over(struct tap *tap)
{
	pthread_mutex_lock(&all.lock);
	tap->bytes_of[tap->filled % CHUNKS] = tap->used;
	tap->frames_of[tap->filled % CHUNKS] = tap->frames;
	tap->filled++;
	pthread_cond_signal(&all.is_filled);
	pthread_mutex_unlock(&all.lock);
	tap->used = tap->frames = 0;
}

/* Whether the chunk that the loop fills next is written. */
static bool has_room(struct tap *tap)
{
	uint64_t written;

	if (tap->used)
		return true;
	pthread_mutex_lock(&all.lock);
	written = tap->written;
	pthread_mutex_unlock(&all.lock);
	return tap->filled - written < CHUNKS;
}

void taps_record(uint64_t now_ns, uint16_t port, const uint8_t *frame, uint32_t resident_bytes,
		 uint32_t bytes)
{
	uint32_t captured = resident_bytes < bytes ? resident_bytes : bytes;
	uint64_t real_ns = now_ns + (uint64_t)all.realtime_minus_mono_ns;
	struct pcap_frame head;

	captured = captured < PCAP_SNAP_BYTES ? captured : PCAP_SNAP_BYTES;
	for (struct tap *tap = all.taps; tap < all.taps + all.count; tap++) {
		if (tap->port != port)
			continue;
		if (tap->used + sizeof(head) + captured > CHUNK_BYTES)
			hand_over(tap);
		if (!has_room(tap)) {
			tap->frames_full++;
			continue;
		}
		head = (struct pcap_frame){(uint32_t)(real_ns / 1000000000), (uint32_t)(real_ns % 1000000000),
					   captured, bytes};
		put(tap, &head, sizeof(head));
		put(tap, frame, captured);
		tap->frames++;
	}
}

/* Called by the writer alone, without the lock. */
static void write_chunk(struct tap *tap, const uint8_t *bytes, uint32_t length)
{
	while (tap->fd >= 0 && length) {
		ssize_t done = write(tap->fd, bytes, length);

		if (done > 0) {
			bytes += done;
			length -= (uint32_t)done;
		} else if (done == 0 || errno != EINTR) {
			complain("writing %s: %s: frames are lost", tap->path,
				 strerror(done ? errno : ENOSPC));
			close(tap->fd);
			tap->fd = -1;
		}
	}
}

static struct tap *next_filled(void)
{
	for (struct tap *tap = all.taps; tap < all.taps + all.count; tap++)
		if (tap->written < tap->filled)
			return tap;
	return NULL;
}

static void *write_chunks(void *nothing)
{
	(void)nothing;
	setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICE);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* setresuid is of all threads, this of one */
	pthread_mutex_lock(&all.lock);
	for (;;) {
		struct tap *tap = next_filled();
		uint32_t chunk;

		if (!tap && all.stop)
			break;
		if (!tap) {
			pthread_cond_wait(&all.is_filled, &all.lock);
			continue;
		}
		chunk = tap->written % CHUNKS;
		pthread_mutex_unlock(&all.lock);
		write_chunk(tap, tap->chunks + (size_t)chunk * CHUNK_BYTES, tap->bytes_of[chunk]);
		pthread_mutex_lock(&all.lock);
		*(tap->fd >= 0 ? &tap->frames_written : &tap->frames_failed) += tap->frames_of[chunk];
		tap->written++;
		pthread_cond_signal(&all.is_written);
	}
	pthread_mutex_unlock(&all.lock);
	return NULL;
}

int taps_open(const struct options *options, const struct clock_offset *clock)
{
	int error;

	all.realtime_minus_mono_ns = clock->realtime_minus_mono_ns;
	for (uint32_t index = 0; index < options->tap_count; index++) {
		struct tap *tap = &all.taps[all.count++];

		tap->path = options->taps[index].path;
		tap->port = options->taps[index].number;
		tap->fd = open(tap->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (tap->fd < 0) {
			complain("--tap %u=%s: %s", tap->port, tap->path, strerror(errno));
			return -errno;
		}
		tap->chunks = malloc((size_t)CHUNKS * CHUNK_BYTES);
		if (!tap->chunks) {
			complain("allocating %u MiB for a tap: out of memory", CHUNKS * CHUNK_BYTES >> 20);
			return -ENOMEM;
		}
		put(tap, &pcap_header, sizeof(pcap_header));
	}
	if (!all.count)
		return 0;
	error = pthread_create(&all.writer, NULL, write_chunks, NULL);
	all.has_writer = !error;
	if (error)
		complain("starting the thread that writes captures: %s", strerror(error));
	return -error;
}

/* Waits until all is written. */
void taps_measure(struct executor *executor)
{
	executor->taps_frames = executor->taps_lost = 0;
	for (struct tap *tap = all.taps; tap < all.taps + all.count && all.has_writer; tap++) {
		if (tap->used)
			hand_over(tap);
		pthread_mutex_lock(&all.lock);
		while (tap->written < tap->filled)
			pthread_cond_wait(&all.is_written, &all.lock);
		executor->taps_frames += tap->frames_written;
		executor->taps_lost += tap->frames_failed + tap->frames_full;
		pthread_mutex_unlock(&all.lock);
	}
}

void taps_close(void)
{
	if (all.has_writer) {
		pthread_mutex_lock(&all.lock);
		all.stop = true;
		pthread_cond_signal(&all.is_filled);
		pthread_mutex_unlock(&all.lock);
		pthread_join(all.writer, NULL);
	}
	for (struct tap *tap = all.taps; tap < all.taps + all.count; tap++) {
		if (tap->fd >= 0)
			close(tap->fd);
		free(tap->chunks);
	}
	all.count = 0;
	all.has_writer = all.stop = false;
}
