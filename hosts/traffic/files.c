// SPDX-License-Identifier: MIT
// Raises the limit of open files no further than requested: some programs close every descriptor up to the limit.
#include "files.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "../../lib/report.h"

int allow_files(uint64_t wanted, uint64_t needed)
{
	struct rlimit limit, raised;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return 0;
	raised.rlim_cur = wanted;
	raised.rlim_max = limit.rlim_max < wanted ? wanted : limit.rlim_max;
	if (!setrlimit(RLIMIT_NOFILE, &raised)) /* beyond the hard limit only with CAP_SYS_RESOURCE */
		return 0;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < needed) {
		complain("%" PRIu64 " files are needed, this process may open %" PRIu64
			 ": open fewer flows, or raise the hard limit (ulimit -Hn)",
			 needed, (uint64_t)limit.rlim_cur);
		return -EMFILE;
	}
	return 0;
}
