// SPDX-License-Identifier: MIT
// Preloaded into a collector: a disk that stalls. The first three writes take 500 ms longer each.
#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	static int stalls = 3;
	ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");

	if (stalls-- > 0)
		usleep(500000);
	else
		stalls = 0;
	return real(fd, bytes, count, offset);
}
