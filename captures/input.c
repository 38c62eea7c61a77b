// SPDX-License-Identifier: MIT
#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int input_open(struct input *input, int fd)
{
	*input = (struct input){.fd = fd, .bytes = malloc(INPUT_MOST_BYTES)};
	return input->bytes ? 0 : -ENOMEM;
}

static bool fill(struct input *input)
{
	ssize_t got;

	if (input->fd < 0 || input->error)
		return false;
	memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
	input->end -= input->begin;
	input->begin = 0;
	do
		got = read(input->fd, input->bytes + input->end, INPUT_MOST_BYTES - input->end);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		input->error = -errno;
	else
		input->end += (size_t)got;
	return got > 0;
}

const uint8_t *input_see(struct input *input, size_t bytes)
{
	if (bytes > INPUT_MOST_BYTES)
		return NULL;
	while (input->end - input->begin < bytes)
		if (!fill(input))
			return NULL;
	return input->bytes + input->begin;
}

bool input_take(struct input *input, uint64_t bytes)
{
	uint64_t part;

	while (bytes) {
		if (input->begin == input->end && !fill(input))
			return false;
		part = input->end - input->begin < bytes ? input->end - input->begin : bytes;
		input->begin += part;
		input->taken += part;
		bytes -= part;
	}
	return true;
}

bool input_ended(struct input *input)
{
	return !input_see(input, 1);
}
