/* SPDX-License-Identifier: MIT
 * The UDP socket: datagrams into their final places in batches, each with the kernel's receive stamp, and the
 * kernel's own count of what it had to drop.
 */
#ifndef COLLECTOR_SOCKET_H
#define COLLECTOR_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "address.h"

enum {
	SOCKET_BATCH =
		64, /* datagrams a system call; more gained nothing and no longer fit the first-level cache */
	SOCKET_CONTROL_BYTES = CMSG_SPACE(2 * sizeof(int64_t)) + CMSG_SPACE(sizeof(uint32_t)),
};

struct arrival {
	int64_t realtime_ns; /* when the kernel got it; 0: the kernel gave no stamp */
	uint32_t bytes;	     /* as sent: may exceed what was stored */
	bool is_stranger;    /* not from the source that was asked for */
};

struct receiver {
	int fd;
	uint64_t buffer_bytes;	      /* granted, as the kernel counts (its overhead included) */
	uint64_t kernel_drops;	      /* before the last datagram received */
	uint32_t last_dropped;	      /* the kernel's 32-bit counter */
	uint64_t strangers;	      /* datagrams of others than source so far */
	const struct address *source; /* NULL: everybody's datagrams are wanted */
	struct arrival arrivals[SOCKET_BATCH];
	struct mmsghdr messages[SOCKET_BATCH];
	struct iovec iov[SOCKET_BATCH];
	struct sockaddr_storage senders[SOCKET_BATCH];
	_Alignas(struct cmsghdr) uint8_t control[SOCKET_BATCH][SOCKET_CONTROL_BYTES];
};

/* Opens and binds; buffer_bytes of receive buffer are asked for. source: of whom datagrams are wanted, no text
 * for everybody. 0 or -errno after one line. */
int receiver_open(struct receiver *receiver, const struct address *address, const struct address *source,
		  uint64_t buffer_bytes);
void receiver_close(struct receiver *receiver);

/* Up to count (<= SOCKET_BATCH) datagrams, without waiting: the i-th one's first data_bytes bytes go to
 * place + i * stride, its facts to arrivals[i]. Returns how many, 0 if none, or -errno. */
int receiver_take(struct receiver *receiver, uint8_t *place, unsigned int stride, unsigned int data_bytes,
		  unsigned int count);

/* Asks the kernel for its drops so far, those after the last datagram received included. */
uint64_t receiver_kernel_drops(struct receiver *receiver);

#endif
