/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Loss and jitter of packets that have left the queue, each with random numbers of its own: every departure takes two
 * numbers for loss and one for jitter.
 */
#include "../../lib/splitmix64.h"
#include "dynamics.h"
#include "freestanding.h"

/* Loss as in tc-netem(8): Bernoulli, or Gilbert-Elliott. The packet that changes the state meets the old one. */
static bool loses(struct loss *loss)
{
	bool lost = splitmix64(&loss->random) < loss->lost[loss->state];

	if (splitmix64(&loss->random) < loss->leaves[loss->state])
		loss->state ^= 1;
	return lost;
}

/* The high half of a product is a uniform number below the other factor; its low half is uniform, too. */
static uint64_t draw_ns(struct jitter *jitter)
{
	unsigned __int128 product = (unsigned __int128)splitmix64(&jitter->random) * (jitter->count - 1);
	const uint64_t *quantile = &jitter->quantiles_ns[product >> 64];

	return quantile[0] +
	       (uint64_t)((unsigned __int128)(uint64_t)product * (quantile[1] - quantile[0] + 1) >> 64);
}

/* A delay line is a FIFO: no packet overtakes its predecessor. A lost packet delays no other. */
uint64_t impair(struct dynamics *dynamics, uint64_t exit_ns)
{
	struct jitter *jitter = &dynamics->jitter;

	if (jitter->count)
		exit_ns += draw_ns(jitter);
	if (dynamics->loss.on && loses(&dynamics->loss)) {
		dynamics->lost++;
		return CORE_NEVER_NS;
	}
	if (jitter->count) {
		if (exit_ns < jitter->exit_ns)
			exit_ns = jitter->exit_ns;
		jitter->exit_ns = exit_ns;
	}
	return exit_ns;
}
