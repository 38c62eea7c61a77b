// SPDX-License-Identifier: MIT
// The load for measuring the switch's frames per second: sends equal UDP frames through a packet socket as fast as one
// core can, for a bounded time. Prints the number of frames that the kernel accepted.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock_ns.h"
#include "lib/options.h"
#include "lib/report.h"

enum { BATCH = 64, MAX_FRAME_BYTES = 1514, MAX_SECONDS = 600, HEADER_BYTES = 14 + 20 + 8 };

const char *const program_name = "udp_flood";

struct flood {
	const char *interface;
	struct ether_addr source, destination;
	uint64_t seconds, frame_bytes;
};

static int fail(const char *doing)
{
	int err = errno; /* complain may change errno */

	complain("%s: %s", doing, strerror(err));
	return -err;
}

static uint16_t ip_checksum(const void *header)
{
	const uint16_t *words = header;
	uint32_t sum = 0;

	for (unsigned int index = 0; index < sizeof(struct iphdr) / 2; index++)
		sum += words[index];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static void build(uint8_t *frame, const struct flood *flood)
{
	struct ether_header *ethernet = (struct ether_header *)frame;
	struct iphdr *ip = (struct iphdr *)(frame + 14);
	struct udphdr *udp = (struct udphdr *)(frame + 34);

	memset(frame, 0, flood->frame_bytes);
	memcpy(ethernet->ether_dhost, &flood->destination, ETH_ALEN);
	memcpy(ethernet->ether_shost, &flood->source, ETH_ALEN);
	ethernet->ether_type = htons(ETHERTYPE_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = htons((uint16_t)(flood->frame_bytes - 14));
	// No host has these addresses: the frame is forwarded by its MAC, and no host answers.
	ip->saddr = inet_addr("192.0.2.1");
	ip->daddr = inet_addr("192.0.2.2");
	ip->check = ip_checksum(ip);
	udp->source = htons(9);
	udp->dest = htons(9);
	udp->len = htons((uint16_t)(flood->frame_bytes - 34));
}

static int send_for(int fd, const struct flood *flood, uint64_t *sent)
{
	static uint8_t frame[MAX_FRAME_BYTES];
	struct iovec part = {frame, flood->frame_bytes};
	struct mmsghdr batch[BATCH];
	uint64_t end_ns = mono_now_ns() + flood->seconds * 1000000000;

	build(frame, flood);
	memset(batch, 0, sizeof(batch));
	for (int index = 0; index < BATCH; index++) {
		batch[index].msg_hdr.msg_iov = &part;
		batch[index].msg_hdr.msg_iovlen = 1;
	}
	while (mono_now_ns() < end_ns) {
		int count = sendmmsg(fd, batch, BATCH, 0);

		if (count > 0)
			*sent += (uint64_t)count;
		else if (errno != ENOBUFS && errno != EAGAIN)
			return fail("send frames");
	}
	return 0;
}

static int read_mac(void *to, const char *name, char *text)
{
	if (ether_aton_r(text, to))
		return 0;
	complain("%s '%s': give a MAC address", name, text);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct flood flood;
	const struct option_row rows[] = {
		OPTION_NEEDED_TEXT("interface", "IF", &flood.interface),
		OPTION_NEEDED_READ("source-mac", "MAC", read_mac, &flood.source),
		OPTION_NEEDED_READ("destination-mac", "MAC", read_mac, &flood.destination),
		OPTION_NEEDED_NUMBER("seconds", &flood.seconds, 1, MAX_SECONDS),
		OPTION_NEEDED_NUMBER("frame-bytes", &flood.frame_bytes, HEADER_BYTES, MAX_FRAME_BYTES),
		OPTIONS_END,
	};
	struct sockaddr_ll address = {.sll_family = AF_PACKET};
	int off = 1, fd, err;
	uint64_t sent = 0;

	err = options_read(rows,
			   "udp_flood --interface IF --source-mac MAC --destination-mac MAC --seconds S "
			   "--frame-bytes N",
			   argc, argv);
	if (err)
		return err > 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail("open a packet socket (root is needed)") ? 1 : 0;
	address.sll_ifindex = (int)if_nametoindex(flood.interface);
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &off, sizeof(off));
	err = bind(fd, (struct sockaddr *)&address, sizeof(address)) ? fail(flood.interface)
								     : send_for(fd, &flood, &sent);
	close(fd);
	printf("{\"sent\": %" PRIu64 "}\n", sent);
	return err ? 1 : 0;
}
