/* SPDX-License-Identifier: MIT
 * The hosts: ns-3 nodes with a stack and one port each. A sender has one address, because ns-3 selects a connection's
 * source address itself: flows from other addresses have senders of their own.
 */
#ifndef SIMULATOR_HOSTS_H
#define SIMULATOR_HOSTS_H

#include <functional>
#include <map>

#include "ns3/ipv4-address.h"
#include "ns3/node.h"
#include "port.h"
#include "scenario.h"

struct Host {
	ns3::Ptr<ns3::Node> node;
	ns3::Ptr<Port> port;
};

/* `leave` takes every packet that the host sends. */
Host new_host(const struct scenario &scenario, ns3::Ipv4Address address,
	      std::function<void(ns3::Ptr<ns3::Packet>)> leave);

class Senders
{
      public:
	Senders(const struct scenario &scenario, const std::function<void(ns3::Ptr<ns3::Packet>)> &leave);

	/* The host of a flow. */
	ns3::Ptr<ns3::Node> Of(const struct scenario_flow &flow) const;
	/* The host of all flows that name no address. */
	ns3::Ptr<ns3::Node> First() const;
	/* Gives a packet to the host that it is addressed to, after the delay. */
	void Deliver(ns3::Ptr<ns3::Packet> packet, uint64_t delay_ns) const;

      private:
	const uint32_t first;
	std::map<uint32_t, Host> hosts; /* by address */
};

#endif
