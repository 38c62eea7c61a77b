// SPDX-License-Identifier: MIT
// Lists the addresses with getifaddrs(3), which works on the namespace of the calling thread.
#include "local_addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "../../lib/report.h"
#include "netns.h"

static uint64_t half(const uint8_t *address)
{
	uint32_t words[2];

	memcpy(words, address, sizeof(words));
	return (uint64_t)ntohl(words[0]) << 32 | ntohl(words[1]);
}

/* An IPv6 or IPv4-mapped address in two halves; false: another address family. */
static bool as_halves(const struct sockaddr *address, uint64_t upper_lo, uint64_t *hi, uint64_t *lo)
{
	if (address && address->sa_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, address, sizeof(v4));
		*lo = upper_lo << 32 | ntohl(v4.sin_addr.s_addr);
		return true;
	}
	if (address && address->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;

		memcpy(&v6, address, sizeof(v6));
		*hi = half(v6.sin6_addr.s6_addr);
		*lo = half(v6.sin6_addr.s6_addr + 8);
		return true;
	}
	return false;
}

static int take(void *context)
{
	struct local_addresses *addresses = context;
	struct ifaddrs *list;
	int err = getifaddrs(&list) ? -errno : 0;

	if (err)
		return err;
	for (struct ifaddrs *each = list; each; each = each->ifa_next) {
		uint64_t hi = 0, lo, hi_mask = UINT64_MAX, lo_mask = UINT64_MAX;

		if (!as_halves(each->ifa_addr, 0xffff, &hi, &lo))
			continue;
		if (addresses->count == MAX_LOCAL_ADDRESSES) {
			err = -E2BIG;
			break;
		}
		if (each->ifa_flags & IFF_LOOPBACK)
			as_halves(each->ifa_netmask, UINT32_MAX, &hi_mask, &lo_mask);
		addresses->address[addresses->count].hi = hi & hi_mask;
		addresses->address[addresses->count].lo = lo & lo_mask;
		addresses->address[addresses->count].hi_mask = hi_mask;
		addresses->address[addresses->count].lo_mask = lo_mask;
		addresses->count++;
	}
	freeifaddrs(list);
	return err;
}

int local_addresses_read(struct local_addresses *addresses, const char *netns_path)
{
	int err;

	addresses->count = 0;
	err = netns_call(netns_path, take, addresses);
	if (err == -E2BIG)
		complain("network namespace %s has more than %d addresses: trace with --source bpf",
			 netns_path, MAX_LOCAL_ADDRESSES);
	else if (err)
		complain("reading the addresses of network namespace %s: %s: run as root", netns_path,
			 strerror(-err));
	return err;
}

bool local_addresses_have(const struct local_addresses *addresses, uint64_t hi, uint64_t lo)
{
	for (uint32_t i = 0; i < addresses->count; i++)
		if ((hi & addresses->address[i].hi_mask) == addresses->address[i].hi &&
		    (lo & addresses->address[i].lo_mask) == addresses->address[i].lo)
			return true;
	return false;
}
