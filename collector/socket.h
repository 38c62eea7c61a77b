/* SPDX-License-Identifier: MIT
 * A UDP socket that takes datagrams in batches to their final places, with the kernel's receive stamps and its count of
 * drops. Several receivers of an address share its datagrams by the sender's address and port.
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
	int fd;
	uint64_t buffer_bytes;	      /* granted, including the kernel's overhead */
	uint64_t kernel_drops;	      /* up to the last received datagram or query */
	uint32_t last_dropped;	      /* the kernel's 32-bit counter */
	uint64_t strangers;	      /* datagrams of other senders than source, so far */
	const struct address *source; /* NULL: accept every sender */
	struct arrival arrivals[SOCKET_BATCH];
	struct mmsghdr messages[SOCKET_BATCH];
	struct iovec iov[SOCKET_BATCH];
	struct sockaddr_storage senders[SOCKET_BATCH];
	_Alignas(struct cmsghdr) uint8_t control[SOCKET_BATCH][SOCKET_CONTROL_BYTES];
};

/* Opens a receiver of options->listen with its share of the buffer. It joins the other receivers of the same options if
 * first has opened; NULL: it is the first. Returns 0, or -errno after one line on stderr.
 */
int receiver_open(struct receiver *receiver, const struct receiver *first, const struct options *options);
void receiver_close(struct receiver *receiver);

/* Receives up to count (<= SOCKET_BATCH) datagrams without waiting. The first data_bytes bytes of datagram i go to
 * place + i * stride; arrivals[i] describes it. Returns the number of datagrams, or -errno. */
int receiver_take(struct receiver *receiver, uint8_t *place, unsigned int stride, unsigned int data_bytes,
		  unsigned int count);

/* Queries the kernel for its drops so far, including those after the last received datagram. */
uint64_t receiver_kernel_drops(struct receiver *receiver);

#endif
