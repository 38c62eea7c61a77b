// SPDX-License-Identifier: MIT
// A ring of frames that the kernel fills (TPACKET_V2: it shows each frame at once). It costs an eighth of a UDP socket's
// time on the reader's side, because taking a datagram needs no system call. The frames go through the host's IP stack,
// too: a UDP socket that drops everything has the port, so the host answers none and checks those with a checksum.
#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "intake.h"

enum {
	PIECE_BYTES = 1 << 16, /* of the ring, contiguous in physical memory */
	SLOT_BYTES = 256,
	DATAGRAM_BYTES =
		512, /* of a socket buffer, for a postcard: a ring holds as many as that buffer would */
	SLOT_HEADER_BYTES = 80, /* TPACKET2_HDRLEN, aligned, and the kernel's room in front of the packet */
	MAX_IP_HEADER_BYTES = 60,
	UDP_HEADER_BYTES = 8,
	FRAGMENT = 0x3fff, /* more fragments, or an offset */
};
_Static_assert(SLOT_HEADER_BYTES + MAX_IP_HEADER_BYTES + UDP_HEADER_BYTES + POSTCARD_BYTES <= SLOT_BYTES,
	       "a slot has no room for a postcard");

static int attach(int fd, struct sock_filter *code, unsigned short length)
{
	const struct sock_fprog program = {length, code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int drop_all(int fd)
{
	return attach(fd, (struct sock_filter[]){BPF_STMT(BPF_RET | BPF_K, 0)}, 1);
}

/* Lets in whole UDP datagrams to this host, address and port. */
static int let_in(int fd, const struct sockaddr_in *address)
{
	uint32_t host = ntohl(address->sin_addr.s_addr);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_HOST, 0, 10),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 8),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FRAGMENT, 6, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(address->sin_port), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, host, 0, host == INADDR_ANY ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, UINT16_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	return attach(fd, code, sizeof(code) / sizeof(*code));
}

/* Each processor has a ring of the group; the frames of a full ring go to another. */
static int join(int fd, const struct receiver *first)
{
	int group = (PACKET_FANOUT_CPU | PACKET_FANOUT_FLAG_ROLLOVER | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	socklen_t length = sizeof(group);

	if (first && getsockopt(first->fd, SOL_PACKET, PACKET_FANOUT, &group, &length))
		return -1;
	return setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group));
}

static int set_up(struct receiver *receiver, int fd, const struct receiver *first,
		  const struct options *options)
{
	const struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	uint64_t postcards = options->receive_buffer_bytes / options->receivers / DATAGRAM_BYTES;
	uint32_t pieces = (uint32_t)(postcards * SLOT_BYTES / PIECE_BYTES) + 1;
	const struct tpacket_req request = {
		.tp_block_size = PIECE_BYTES,
		.tp_block_nr = pieces,
		.tp_frame_size = SLOT_BYTES,
		.tp_frame_nr = pieces * (PIECE_BYTES / SLOT_BYTES),
	};
	int version = TPACKET_V2, on = 1;
	void *ring;

	/* SO_TIMESTAMPNS makes the kernel stamp a frame when it comes, not when it is put into the ring. */
	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) ||
	    /* Only the socket of a running ring can join: until then it must not take what the others take. */
	    drop_all(fd) || bind(fd, (const struct sockaddr *)&all, sizeof(all)) ||
	    (options->receivers > 1 && join(fd, first)) ||
	    let_in(fd, (const struct sockaddr_in *)&options->listen.storage))
		return -errno;
	receiver->buffer_bytes = (uint64_t)pieces * PIECE_BYTES;
	ring = mmap(NULL, receiver->buffer_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (ring == MAP_FAILED || (receiver->fd >= 0 && drop_all(receiver->fd)))
		return -errno;
	receiver->ring = ring;
	receiver->slots = request.tp_frame_nr;
	return 0;
}

int ring_open(struct receiver *receiver, const struct receiver *first, const struct options *options)
{
	/* Protocol 0: no frames until the bind. */
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : set_up(receiver, fd, first, options);

	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	receiver->port_fd = receiver->fd;
	receiver->fd = fd;
	return 0;
}

void ring_close(struct receiver *receiver)
{
	if (receiver->ring)
		munmap(receiver->ring, receiver->buffer_bytes);
	if (receiver->port_fd >= 0)
		close(receiver->port_fd);
	receiver->ring = NULL;
	receiver->port_fd = -1;
}

/* The filter saw an IPv4 header and a UDP port. A datagram that the frame does not hold whole counts as empty. */
static void read_slot(struct receiver *receiver, const struct tpacket2_hdr *head, struct arrival *arrival,
		      uint8_t *place, unsigned int data_bytes)
{
	const uint8_t *ip = (const uint8_t *)head + head->tp_net;
	uint32_t ip_header_bytes = (ip[0] & 15u) * 4;
	const uint8_t *udp = ip + ip_header_bytes;
	uint32_t udp_bytes = (uint32_t)udp[4] << 8 | udp[5];
	bool whole = udp_bytes >= UDP_HEADER_BYTES && ip_header_bytes + udp_bytes <= head->tp_len;
	struct sockaddr_storage sender = {.ss_family = AF_INET};

	arrival->bytes = whole ? udp_bytes - UDP_HEADER_BYTES : 0;
	arrival->realtime_ns = head->tp_sec * 1000000000LL + head->tp_nsec;
	memcpy(place, udp + UDP_HEADER_BYTES, arrival->bytes < data_bytes ? arrival->bytes : data_bytes);
	if (receiver->source)
		memcpy(&((struct sockaddr_in *)&sender)->sin_addr, ip + 12, 4);
	arrival->is_stranger = receiver->source && !address_same_host(&sender, &receiver->source->storage);
	receiver->strangers += arrival->is_stranger;
}

int ring_take(struct receiver *receiver, uint8_t *place, unsigned int stride, unsigned int data_bytes,
	      unsigned int count)
{
	unsigned int taken = 0;

	for (; taken < count; taken++, place += stride) {
		struct tpacket2_hdr *head = (void *)(receiver->ring + (size_t)receiver->slot * SLOT_BYTES);

		if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		read_slot(receiver, head, &receiver->arrivals[taken], place, data_bytes);
		__atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		receiver->slot = receiver->slot + 1 == receiver->slots ? 0 : receiver->slot + 1;
	}
	return (int)taken;
}

void ring_count_drops(struct receiver *receiver)
{
	struct tpacket_stats stats;
	socklen_t length = sizeof(stats);

	/* The kernel resets its counters on each read. */
	if (!getsockopt(receiver->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length))
		receiver->kernel_drops += stats.tp_drops;
}
