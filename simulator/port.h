/* SPDX-License-Identifier: MIT
 * A network device that hands every IP packet to a function at once. Links and queues are simulated elsewhere
 * (bottleneck.h, paths.h).
 */
#ifndef SIMULATOR_PORT_H
#define SIMULATOR_PORT_H

#include <functional>

#include "ns3/channel.h"
#include "ns3/mac48-address.h"
#include "ns3/net-device.h"
#include "ns3/node.h"
#include "ns3/packet.h"

class Port : public ns3::NetDevice
{
      public:
	Port(uint16_t mtu_bytes, std::function<void(ns3::Ptr<ns3::Packet>)> leave)
	    : mtu_bytes(mtu_bytes), leave(std::move(leave)), address(ns3::Mac48Address::Allocate())
	{
	}

	/* Gives an IPv4 packet to the host. */
	void Receive(ns3::Ptr<ns3::Packet> packet)
	{
		receive(this, packet, IPV4, address);
	}

	bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address &, uint16_t) override
	{
		leave(packet);
		return true;
	}

	bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address &, const ns3::Address &,
		      uint16_t) override
	{
		leave(packet);
		return true;
	}

	void SetNode(ns3::Ptr<ns3::Node> to) override
	{
		node = to;
	}
	ns3::Ptr<ns3::Node> GetNode() const override
	{
		return node;
	}
	void SetIfIndex(const uint32_t to) override
	{
		index = to;
	}
	uint32_t GetIfIndex() const override
	{
		return index;
	}
	bool SetMtu(const uint16_t to) override
	{
		mtu_bytes = to;
		return true;
	}
	uint16_t GetMtu() const override
	{
		return mtu_bytes;
	}
	void SetReceiveCallback(ReceiveCallback to) override
	{
		receive = to;
	}
	ns3::Address GetAddress() const override
	{
		return address;
	}
	ns3::Address GetBroadcast() const override
	{
		return ns3::Mac48Address::GetBroadcast();
	}
	bool IsLinkUp() const override
	{
		return true;
	}
	bool IsPointToPoint() const override
	{
		return true;
	}
	bool IsBroadcast() const override
	{
		return false;
	}
	bool IsMulticast() const override
	{
		return false;
	}
	bool IsBridge() const override
	{
		return false;
	}
	bool NeedsArp() const override
	{
		return false;
	}
	bool SupportsSendFrom() const override
	{
		return false;
	}
	ns3::Ptr<ns3::Channel> GetChannel() const override
	{
		return nullptr;
	}
	ns3::Address GetMulticast(ns3::Ipv4Address) const override
	{
		return GetBroadcast();
	}
	ns3::Address GetMulticast(ns3::Ipv6Address) const override
	{
		return GetBroadcast();
	}
	void SetAddress(ns3::Address) override
	{
	}
	void SetPromiscReceiveCallback(PromiscReceiveCallback) override
	{
	}
	void AddLinkChangeCallback(ns3::Callback<void>) override
	{
	}

      private:
	static constexpr uint16_t IPV4 = 0x0800;

	uint16_t mtu_bytes;
	uint32_t index = 0;
	std::function<void(ns3::Ptr<ns3::Packet>)> leave;
	ns3::Mac48Address address;
	ns3::Ptr<ns3::Node> node;
	ReceiveCallback receive;
};

#endif
