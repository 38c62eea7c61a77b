/* SPDX-License-Identifier: MIT
 * A receiver takes datagrams in batches to their final places, with the kernel's receive stamps and its count of drops:
 * from a ring of frames that it shares with the kernel (ring.c), or else by system calls from a UDP socket. Several
 * receivers of an address share its datagrams: rings by the processor that the kernel received them on, sockets by the
 * sender's address and port.
 */
#ifndef COLLECTOR_SOCKET_H
#define COLLECTOR_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "options.h"

enum {
	SOCKET_BATCH =
		64, /* datagrams per system call; larger batches were not faster, and exceed the L1 cache */
	SOCKET_CONTROL_BYTES = CMSG_SPACE(2 * sizeof(int64_t)) + CMSG_SPACE(sizeof(uint32_t)),
};

struct arrival {
	int64_t realtime_ns; /* the kernel's stamp; 0: none */
	uint32_t bytes;	     /* as sent: may exceed the stored bytes */
	bool is_stranger;    /* not from the requested source */
};

struct receiver {
	int fd;		       /* read and polled */
	int port_fd;	       /* with a ring, in the first receiver: the socket that has the port; else -1 */
	const char *front_end; /* its name: where datagrams are taken from */
	uint8_t *ring;	       /* NULL: a UDP socket */
	uint32_t slots, slot;  /* of the ring; the next to read */
	uint64_t buffer_bytes; /* granted, including the kernel's overhead */
	uint64_t kernel_drops; /* up to the last query, of a socket also up to the last received datagram */
	uint32_t last_dropped; /* the kernel's 32-bit counter */
	uint64_t strangers;    /* datagrams of other senders than source, so far */
	const struct address *source; /* NULL: accept every sender */
	struct arrival arrivals[SOCKET_BATCH];
	struct mmsghdr messages[SOCKET_BATCH];
	struct iovec iov[SOCKET_BATCH];
	struct sockaddr_storage senders[SOCKET_BATCH];
	_Alignas(struct cmsghdr) uint8_t control[SOCKET_BATCH][SOCKET_CONTROL_BYTES];
};

/* Opens a receiver of options->listen with its share of the buffer. It joins the other receivers of the same options
 * through first; NULL: it is the first. The first uses a ring if it may (options->ring, an IPv4 address, and the
 * kernel lets this process have one), and so do all. Returns 0, or -errno after one line on stderr.
 */
int receiver_open(struct receiver *receiver, struct receiver *first, const struct options *options);
void receiver_close(struct receiver *receiver);

/* Receives up to count (<= SOCKET_BATCH) datagrams without waiting. The first data_bytes bytes of datagram i go to
 * place + i * stride; arrivals[i] describes it. Returns the number of datagrams, or -errno. */
int receiver_take(struct receiver *receiver, uint8_t *place, unsigned int stride, unsigned int data_bytes,
		  unsigned int count);

/* Queries the kernel for its drops so far, including those after the last received datagram. */
uint64_t receiver_kernel_drops(struct receiver *receiver);

/* ring.c: the same for a ring. ring_open replaces the socket in fd, which it keeps in port_fd. Returns 0, or -errno
 * without a message and with the receiver unchanged.
 */
int ring_open(struct receiver *receiver, const struct receiver *first, const struct options *options);
void ring_close(struct receiver *receiver);
int ring_take(struct receiver *receiver, uint8_t *place, unsigned int stride, unsigned int data_bytes,
	      unsigned int count);
void ring_count_drops(struct receiver *receiver);

#endif
