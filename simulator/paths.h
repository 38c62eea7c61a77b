/* SPDX-License-Identifier: MIT
 * The parts of a path to the receiver that differ between flows: an access link before the queue (a flow's own, or
 * shared) and a delay behind the queue. The semantics are those of softswitch/runtime/links.c, implemented
 * independently on purpose.
 */
#ifndef SIMULATOR_PATHS_H
#define SIMULATOR_PATHS_H

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "ns3/packet.h"
#include "ns3/ptr.h"
#include "scenario.h"

class Paths
{
      public:
	explicit Paths(const struct scenario &scenario);

	/* The packet's waiting and transmission time at its access link, in ns. Reserves the link for that time. */
	uint64_t AccessDelay(ns3::Ptr<const ns3::Packet> packet);
	/* The flow's delay in addition to the delay of the bottleneck's link, in ns. */
	uint64_t ExtraDelay(ns3::Ptr<const ns3::Packet> packet) const;

      private:
	struct Link {
		uint64_t rate_bps;
		uint64_t free_ns = 0, carry = 0;
	};
	struct Path {
		uint64_t extra_ns = 0;
		Link *link = nullptr;
	};

	const Path *Of(ns3::Ptr<const ns3::Packet> packet) const;

	std::deque<Link> links;
	std::unordered_map<uint32_t, Path> paths; /* by the pair of ports: no two flows have the same pair */
};

#endif
