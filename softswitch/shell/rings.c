/* SPDX-License-Identifier: MIT
 * A memory-mapped receive ring (TPACKET_V2) for each port. V2 shows a frame at once; V3 would show it when its block
 * is closed. Frames are read in place and copied by the core.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "shell.h"

enum {
	BLOCK_BYTES = 1 << 18, /* physically contiguous; a slot lies within one block */
	SLOT_ALIGN_BYTES = 128,
	/* Before each frame: the kernel's header, the reserve for a VLAN tag, alignment. */
	SLOT_HEADER_BYTES = 128,
	ADDRESSES_BYTES = 12, /* before the EtherType or the VLAN tag */
};

int ring_interface_mtu(const char *interface)
{
	struct ifreq request = {0};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result;

	strcpy(request.ifr_name, interface);
	result = fd < 0 || ioctl(fd, SIOCGIFMTU, &request) ? -errno : request.ifr_mtu;
	if (result == -ENODEV)
		complain("opening %s: no such interface in this network namespace (ip link)", interface);
	else if (result < 0)
		complain("reading the MTU of %s: %s", interface, strerror(-result));
	if (fd >= 0)
		close(fd);
	return result;
}

int ring_check_offloads(const char *interface)
{
	static const struct {
		uint32_t command;
		uint32_t mask;
		const char *name;
	} checks[] = {
		{ETHTOOL_GTSO, 1, "tso"},
		{ETHTOOL_GGSO, 1, "gso"},
		{ETHTOOL_GGRO, 1, "gro"},
		{ETHTOOL_GFLAGS, ETH_FLAG_LRO, "lro"},
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char on[64] = "";

	for (size_t index = 0; fd >= 0 && index < sizeof(checks) / sizeof(checks[0]); index++) {
		struct ethtool_value value = {.cmd = checks[index].command};
		struct ifreq request = {.ifr_data = (void *)&value};

		strcpy(request.ifr_name, interface);
		if (!ioctl(fd, SIOCETHTOOL, &request) && value.data & checks[index].mask) {
			strcat(strcat(on, " "), checks[index].name);
			strcat(on, " off");
		}
	}
	if (fd >= 0)
		close(fd);
	if (!*on)
		return 0;
	complain("opening %s: offloads that hide packets are on: ethtool -K %s%s (or --allow-offloads)",
		 interface, interface, on);
	return -EINVAL;
}

static int map_ring(struct ring *ring, uint32_t frame_bytes, uint32_t ring_mib)
{
	uint32_t slot_bytes = frame_bytes + SLOT_HEADER_BYTES;
	struct tpacket_req request;

	slot_bytes = (slot_bytes + SLOT_ALIGN_BYTES - 1) / SLOT_ALIGN_BYTES * SLOT_ALIGN_BYTES;
	/* Slots do not cross blocks, so the end of a block is unused (head_of). */
	request.tp_block_size = BLOCK_BYTES;
	request.tp_frame_size = slot_bytes;
	request.tp_block_nr = ring_mib * ((1 << 20) / BLOCK_BYTES);
	request.tp_frame_nr = request.tp_block_nr * (BLOCK_BYTES / slot_bytes);
	if (setsockopt(ring->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		return -errno;
	ring->slot_bytes = slot_bytes;
	ring->slots = request.tp_frame_nr;
	ring->counters->rx_ring_slots = ring->slots;
	ring->map_bytes = (size_t)request.tp_block_nr * BLOCK_BYTES;
	ring->map = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->map == MAP_FAILED) {
		ring->map = NULL;
		return -errno;
	}
	return 0;
}

static int configure(struct ring *ring, uint32_t frame_bytes, uint32_t ring_mib)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = ring->ifindex,
	};
	struct packet_mreq promiscuous = {.mr_ifindex = ring->ifindex, .mr_type = PACKET_MR_PROMISC};
	int version = TPACKET_V2;
	int reserve = VLAN_BYTES;
	int on = 1;
	int error;

	if (setsockopt(ring->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(ring->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof(reserve)) ||
	    setsockopt(ring->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    /* Makes the kernel stamp a frame when the sender hands it over, not when the receiver's softirq runs. */
	    setsockopt(ring->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
		return -errno;
	error = map_ring(ring, frame_bytes, ring_mib);
	if (error)
		return error;
	if (bind(ring->fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(ring->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)))
		return -errno;
	return 0;
}

int ring_open(struct ring *ring, struct executor_port *counters, const char *interface, uint32_t frame_bytes,
	      uint32_t ring_mib)
{
	int error;

	memset(ring, 0, sizeof(*ring));
	ring->counters = counters;
	ring->ifindex = (int)if_nametoindex(interface);
	/* Protocol 0 until the bind: the ring never gets frames of other interfaces. */
	ring->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	error = ring->fd < 0 ? -errno : configure(ring, frame_bytes, ring_mib);
	if (error) {
		complain("opening a receive ring of %u MiB on %s: %s", ring_mib, interface, strerror(-error));
		ring_close(ring);
	}
	return error;
}

void ring_close(struct ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_bytes);
	if (ring->fd >= 0)
		close(ring->fd);
	ring->map = NULL;
	ring->fd = -1;
}

static struct tpacket2_hdr *head_of(const struct ring *ring)
{
	uint32_t per_block = BLOCK_BYTES / ring->slot_bytes;
	size_t offset = (size_t)(ring->slot / per_block) * BLOCK_BYTES +
			(size_t)(ring->slot % per_block) * ring->slot_bytes;

	return (struct tpacket2_hdr *)(ring->map + offset);
}

bool ring_peek(struct ring *ring, const struct clock_offset *clock)
{
	struct tpacket2_hdr *head = head_of(ring);

	if (ring->has_head)
		return true;
	if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return false;
	ring->has_head = true;
	ring->head_ns =
		(uint64_t)head->tp_sec * 1000000000 + head->tp_nsec - (uint64_t)clock->realtime_minus_mono_ns;
	return true;
}

/* Puts back the VLAN tag that the kernel removed: the frame grows into the reserve before it. */
static const uint8_t *restore_vlan(struct tpacket2_hdr *head, uint8_t *frame)
{
	uint16_t type = head->tp_status & TP_STATUS_VLAN_TPID_VALID ? head->tp_vlan_tpid : ETH_P_8021Q;
	uint16_t tag[2] = {htons(type), htons(head->tp_vlan_tci)};

	memmove(frame - VLAN_BYTES, frame, ADDRESSES_BYTES);
	memcpy(frame - VLAN_BYTES + ADDRESSES_BYTES, tag, sizeof(tag));
	return frame - VLAN_BYTES;
}

void ring_take(struct ring *ring, struct ring_frame *frame)
{
	struct tpacket2_hdr *head = head_of(ring);
	uint8_t *bytes = (uint8_t *)head + head->tp_mac;

	frame->arrival_ns = ring->head_ns;
	frame->bytes = bytes;
	frame->length = head->tp_len;
	if (head->tp_snaplen < head->tp_len)
		ring->counters->rx_truncated++;
	else if (head->tp_status & TP_STATUS_VLAN_VALID && frame->length >= ADDRESSES_BYTES) {
		frame->bytes = restore_vlan(head, bytes);
		frame->length += VLAN_BYTES;
	}
	if (head->tp_status & TP_STATUS_CSUMNOTREADY)
		ring->counters->rx_checksum_missing++;
}

void ring_give_back(struct ring *ring)
{
	__atomic_store_n(&head_of(ring)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	ring->slot = ring->slot + 1 == ring->slots ? 0 : ring->slot + 1;
	ring->has_head = false;
}

void ring_read_drops(struct ring *ring)
{
	struct tpacket_stats stats;
	socklen_t bytes = sizeof(stats);

	/* The kernel resets its counters on each read. */
	if (!getsockopt(ring->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes))
		ring->counters->rx_ring_drops += stats.tp_drops;
}

void ring_clear_error(struct ring *ring)
{
	socklen_t bytes = sizeof(int);
	int error;

	getsockopt(ring->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
}
