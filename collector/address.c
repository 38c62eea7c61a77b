// SPDX-License-Identifier: MIT
// Reads ADDRESS:PORT. Numeric only: a measurement must not wait for, or depend on, a name service.
#include "address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

static int bad_address(const char *option, const char *text)
{
	complain("%s %s: give ADDRESS:PORT or :PORT, as 10.78.0.2:5577, [fd00::1]:5577 or :5577 (no names)",
		 option, text);
	return -EINVAL;
}

int address_parse(const char *option, const char *text, struct address *address)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				       .ai_socktype = SOCK_DGRAM};
	const char *colon = strrchr(text, ':');
	struct addrinfo *found;
	char host[64] = "";
	uint64_t port;
	size_t length;
	int err;

	memset(address, 0, sizeof(*address));
	if (!colon || strlen(text) >= sizeof(address->text))
		return bad_address(option, text);
	err = parse_number(option, colon + 1, 1, 65535, &port);
	if (err)
		return err;
	strcpy(address->text, text);
	length = (size_t)(colon - text);
	if (!length) {
		((struct sockaddr_in6 *)&address->storage)->sin6_port = htons((uint16_t)port);
		return 0;
	}

	/* An IPv6 address needs its brackets, or its last group would be taken for the port. */
	if (length >= sizeof(host) || (*text == '[') != !!memchr(text, ':', length))
		return bad_address(option, text);
	if (*text == '[') {
		if (text[length - 1] != ']')
			return bad_address(option, text);
		memcpy(host, text + 1, length - 2);
	} else {
		memcpy(host, text, length);
	}
	if (!*host || getaddrinfo(host, colon + 1, &hints, &found))
		return bad_address(option, text);
	memcpy(&address->storage, found->ai_addr, found->ai_addrlen);
	address->length = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}
