// SPDX-License-Identifier: MIT
#include "hosts.h"

#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-header.h"
#include "ns3/ipv4.h"
#include "ns3/simulator.h"

using namespace ns3;

Host new_host(const struct scenario &scenario, Ipv4Address address, std::function<void(Ptr<Packet>)> leave)
{
	Ptr<Port> port = Create<Port>(static_cast<uint16_t>(scenario.mtu_bytes), std::move(leave));
	Ptr<Node> node = CreateObject<Node>();
	InternetStackHelper stack;

	stack.SetIpv6StackInstall(false);
	stack.Install(node);
	node->AddDevice(port);
	Ptr<Ipv4> ipv4 = node->GetObject<Ipv4>();
	const uint32_t interface = ipv4->AddInterface(port);

	// The sources of 1,000 paths need more than a /24.
	ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, Ipv4Mask("255.255.0.0")));
	ipv4->SetUp(interface);
	return {node, port};
}

Senders::Senders(const struct scenario &scenario, const std::function<void(Ptr<Packet>)> &leave)
    : first(Ipv4Address(scenario.sender).Get())
{
	hosts[first] = new_host(scenario, Ipv4Address(first), leave);
	for (uint32_t index = 0; index < scenario.flow_count; index++) {
		const uint32_t source = scenario.flows[index].source;

		if (source && !hosts.count(source))
			hosts[source] = new_host(scenario, Ipv4Address(source), leave);
	}
}

Ptr<Node> Senders::Of(const struct scenario_flow &flow) const
{
	return hosts.at(flow.source ? flow.source : first).node;
}

Ptr<Node> Senders::First() const
{
	return hosts.at(first).node;
}

void Senders::Deliver(Ptr<Packet> packet, uint64_t delay_ns) const
{
	Ipv4Header ip;

	packet->PeekHeader(ip);
	const Host &host = hosts.at(ip.GetDestination().Get());

	Simulator::ScheduleWithContext(host.node->GetId(), NanoSeconds(delay_ns), &Port::Receive, host.port,
				       packet);
}
