// SPDX-License-Identifier: MIT
// Lists the addresses with getifaddrs(3), which works on the namespace of the calling thread.
#include "local_addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "../../lib/report.h"
#include "address.h"
#include "netns.h"

static int take(void *context)
{
	struct local_addresses *addresses = context;
	struct ifaddrs *list;
	int err = getifaddrs(&list) ? -errno : 0;

	if (err)
		return err;
	for (struct ifaddrs *each = list; each; each = each->ifa_next) {
		uint64_t hi = 0, lo, hi_mask = UINT64_MAX, lo_mask = UINT64_MAX;

		if (!each->ifa_addr || !address_read(each->ifa_addr, 0xffff, &hi, &lo))
			continue;
		if (addresses->count == MAX_LOCAL_ADDRESSES) {
			err = -E2BIG;
			break;
		}
		if (each->ifa_flags & IFF_LOOPBACK && each->ifa_netmask)
			address_read(each->ifa_netmask, UINT32_MAX, &hi_mask, &lo_mask);
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
