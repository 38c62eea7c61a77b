// SPDX-License-Identifier: MIT
// Reads ADDRESS:PORT. Numeric only: a measurement must not wait for, or depend on, a name service.
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/report.h"

static int bad_address(const char *option, const char *text)
{
	complain(
		"%s %.80s: give ADDRESS:PORT or :PORT, as 10.78.0.2:5577, [fd00::1]:5577 or :5577 (no names)",
		option, text);
	return -EINVAL;
}

/* An IPv6 address is in brackets, so that its last group is not read as the port. getaddrinfo handles scopes:
 * [fe80::1%eth0].
 */
static bool set_ipv6(struct address *address, const char *text, size_t length, uint16_t port)
{
	const struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_NUMERICHOST};
	struct sockaddr_in6 *to = (struct sockaddr_in6 *)&address->storage;
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE];
	struct addrinfo *list;

	if (length < 3 || length - 2 >= sizeof(host) || text[length - 1] != ']')
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)length - 2, text + 1);
	if (getaddrinfo(host, NULL, &hints, &list))
		return false;
	memcpy(to, list->ai_addr, sizeof(*to));
	freeaddrinfo(list);
	to->sin6_port = htons(port);
	address->length = sizeof(*to);
	return true;
}

static bool set_ipv4(struct address *address, const char *text, size_t length, uint16_t port)
{
	struct sockaddr_in *to = (struct sockaddr_in *)&address->storage;
	char host[INET_ADDRSTRLEN];

	if (length >= sizeof(host))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)length, text);
	if (inet_pton(AF_INET, host, &to->sin_addr) != 1)
		return false;
	to->sin_family = AF_INET;
	to->sin_port = htons(port);
	address->length = sizeof(*to);
	return true;
}

int address_read(void *to, const char *name, char *text)
{
	const char *colon = strrchr(text, ':');
	struct address *address = to;
	uint64_t port;
	size_t length;
	bool good;
	int err;

	memset(address, 0, sizeof(*address));
	if (!colon || strlen(text) >= sizeof(address->text))
		return bad_address(name, text);
	err = parse_number(name, colon + 1, 1, UINT16_MAX, &port);
	if (err)
		return err;
	strcpy(address->text, text);
	length = (size_t)(colon - text);
	if (!length) {
		/* The family is not known yet; the port has the same offset in both. */
		((struct sockaddr_in6 *)&address->storage)->sin6_port = htons((uint16_t)port);
		return 0;
	}
	if (*text == '[')
		good = set_ipv6(address, text, length, (uint16_t)port);
	else
		good = set_ipv4(address, text, length, (uint16_t)port);
	return good ? 0 : bad_address(name, text);
}

/* A configured host never sends from an unspecified, multicast or limited broadcast address (RFC 1122 section 3.2.1.3,
 * RFC 4291 sections 2.5.2 and 2.7). */
static bool can_send(const struct sockaddr_storage *storage)
{
	const struct in6_addr *ipv6 = &((const struct sockaddr_in6 *)storage)->sin6_addr;
	in_addr_t ipv4;

	if (storage->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(ipv6))
		return !IN6_IS_ADDR_UNSPECIFIED(ipv6) && !IN6_IS_ADDR_MULTICAST(ipv6);
	if (storage->ss_family == AF_INET6)
		memcpy(&ipv4, &ipv6->s6_addr[12], sizeof(ipv4));
	else
		ipv4 = ((const struct sockaddr_in *)storage)->sin_addr.s_addr;
	ipv4 = ntohl(ipv4);
	return ipv4 != INADDR_ANY && ipv4 != INADDR_BROADCAST && !IN_MULTICAST(ipv4);
}

int address_read_host(void *to, const char *name, char *text)
{
	struct address *address = to;
	size_t length = strlen(text);

	if (address->length) {
		complain("%s %.80s: is given twice; allowed: one sender", name, text);
		return -EINVAL;
	}
	if (length >= sizeof(address->text) ||
	    !(*text == '[' ? set_ipv6(address, text, length, 0) : set_ipv4(address, text, length, 0))) {
		complain("%s %.80s: give an address, as 10.78.0.1 or [fd00::1] (no names, no port)", name,
			 text);
		return -EINVAL;
	}
	if (!can_send(&address->storage)) {
		complain("%s %.80s: no host sends from this address; give the address of one host", name,
			 text);
		return -EINVAL;
	}
	strcpy(address->text, text);
	return 0;
}

/* IPv4 as an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2). */
static struct in6_addr as_ipv6(const struct sockaddr_storage *storage)
{
	struct in6_addr address = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (storage->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)storage)->sin6_addr;
	memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)storage)->sin_addr, 4);
	return address;
}

bool address_can_reach(const struct sockaddr_storage *from, const struct sockaddr_storage *listening)
{
	const struct in6_addr *listens = &((const struct sockaddr_in6 *)listening)->sin6_addr;
	struct in6_addr sender = as_ipv6(from);
	bool sends_ipv4 = IN6_IS_ADDR_V4MAPPED(&sender);

	if (listening->ss_family == AF_INET)
		return sends_ipv4;
	if (listening->ss_family != AF_INET6 || IN6_IS_ADDR_UNSPECIFIED(listens))
		return true;
	return IN6_IS_ADDR_V4MAPPED(listens) ? sends_ipv4 : !sends_ipv4;
}

bool address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct in6_addr first = as_ipv6(a), second = as_ipv6(b);

	return !memcmp(&first, &second, sizeof(first));
}
