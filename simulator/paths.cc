// SPDX-License-Identifier: MIT
#include "paths.h"

#include <algorithm>
#include <map>

#include "lib/frames.h"

#include "ns3/simulator.h"

using namespace ns3;

namespace
{

constexpr uint32_t IP_BYTES = 20; // our flows have no IP options

uint32_t ports(uint16_t client, uint16_t server)
{
	return uint32_t{client} << 16 | server;
}

uint64_t wire_bits(Ptr<const Packet> packet)
{
	return 8 *
	       (std::max<uint64_t>(packet->GetSize() + ETHERNET_BYTES, LEAST_FRAME_BYTES) + WIRE_EXTRA_BYTES);
}

} // namespace

Paths::Paths(const struct scenario &scenario)
{
	std::map<uint32_t, Link *> shared;

	for (uint32_t index = 0; index < scenario.flow_count; index++) {
		const struct scenario_flow &flow = scenario.flows[index];
		Link *link = nullptr;

		if (!flow.extra_delay_ns && !flow.access_bps)
			continue;
		if (flow.access_bps) {
			Link *&known = shared[flow.access_link];

			if (!flow.access_link || !known)
				known = &links.emplace_back(Link{flow.access_bps});
			link = known;
		}
		paths[ports(flow.client_port, flow.server_port)] = {flow.extra_delay_ns, link};
	}
}

const Paths::Path *Paths::Of(Ptr<const Packet> packet) const
{
	uint8_t head[IP_BYTES + 4];

	if (paths.empty() || packet->CopyData(head, sizeof(head)) < sizeof(head))
		return nullptr;
	const auto known = paths.find(ports(static_cast<uint16_t>(head[20] << 8 | head[21]),
					    static_cast<uint16_t>(head[22] << 8 | head[23])));

	return known == paths.end() ? nullptr : &known->second;
}

uint64_t Paths::AccessDelay(Ptr<const Packet> packet)
{
	const uint64_t now_ns = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
	const Path *path = Of(packet);

	if (!path || !path->link)
		return 0;
	Link &link = *path->link;
	const bool waits = now_ns <= link.free_ns;
	const uint64_t numerator = wire_bits(packet) * 1000000000 + (waits ? link.carry : 0);

	link.free_ns = (waits ? link.free_ns : now_ns) + numerator / link.rate_bps;
	link.carry = numerator % link.rate_bps;
	return link.free_ns - now_ns;
}

uint64_t Paths::ExtraDelay(Ptr<const Packet> packet) const
{
	const Path *path = Of(packet);

	return path ? path->extra_ns : 0;
}
