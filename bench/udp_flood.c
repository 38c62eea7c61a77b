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
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, MAX_FRAME_BYTES = 1514, MAX_SECONDS = 600, HEADER_BYTES = 14 + 20 + 8 };

struct flood {
	const char *interface;
	struct ether_addr source, destination;
	unsigned int seconds, frame_bytes;
};

static int fail(const char *doing)
{
	int err = errno; /* fprintf may change errno */

	fprintf(stderr, "udp_flood: %s: %s\n", doing, strerror(err));
	return -err;
}

static uint64_t mono_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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
	uint64_t end_ns = mono_now_ns() + flood->seconds * UINT64_C(1000000000);

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

static int parse(struct flood *flood, int argc, char **argv)
{
	for (int index = 1; index + 1 < argc; index += 2) {
		const char *name = argv[index], *value = argv[index + 1];
		const struct ether_addr *mac = ether_aton(value);

		if (!strcmp(name, "--interface"))
			flood->interface = value;
		else if (!strcmp(name, "--source-mac") && mac)
			flood->source = *mac;
		else if (!strcmp(name, "--destination-mac") && mac)
			flood->destination = *mac;
		else if (!strcmp(name, "--seconds"))
			flood->seconds = (unsigned int)strtoul(value, NULL, 10);
		else if (!strcmp(name, "--frame-bytes"))
			flood->frame_bytes = (unsigned int)strtoul(value, NULL, 10);
		else
			return -EINVAL;
	}
	if (!flood->interface || !flood->seconds || flood->seconds > MAX_SECONDS ||
	    flood->frame_bytes < HEADER_BYTES || flood->frame_bytes > MAX_FRAME_BYTES)
		return -EINVAL;
	return 0;
}

int main(int argc, char **argv)
{
	struct flood flood = {0};
	struct sockaddr_ll address = {.sll_family = AF_PACKET};
	int off = 1, fd, err;
	uint64_t sent = 0;

	if (parse(&flood, argc, argv)) {
		fprintf(stderr,
			"udp_flood --interface IF --source-mac MAC --destination-mac MAC --seconds 1..%d "
			"--frame-bytes %d..%d\n",
			MAX_SECONDS, HEADER_BYTES, MAX_FRAME_BYTES);
		return 2;
	}
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
