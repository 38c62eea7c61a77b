// SPDX-License-Identifier: MIT
#include "bottleneck.h"

#include <algorithm>

#include "lib/frames.h"

#include "ns3/ipv4-header.h"
#include "ns3/simulator.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/udp-header.h"

using namespace ns3;

namespace
{

constexpr uint16_t SENDER_PORT = 1, BOTTLENECK_PORT = 2, SWITCH_ID = 1;
constexpr uint8_t POLICY[] = {1, 2, 3}; // p4src/shared/policy.def, by enum queue_mode

uint64_t now()
{
	return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

uint128_t mapped(Ipv4Address address)
{
	return static_cast<uint128_t>(0xffff) << 32 | address.Get();
}

void describe_tcp(struct postcard &card, Ptr<const Packet> segment)
{
	TcpHeader tcp;

	segment->PeekHeader(tcp);
	card.flags |= POSTCARD_HAS_PORTS | POSTCARD_HAS_TCP;
	card.src_port = tcp.GetSourcePort();
	card.dst_port = tcp.GetDestinationPort();
	card.tcp_seq = tcp.GetSequenceNumber().GetValue();
	card.tcp_ack = tcp.GetAckNumber().GetValue();
	card.tcp_flags = tcp.GetFlags();
}

void describe_udp(struct postcard &card, Ptr<const Packet> datagram)
{
	UdpHeader udp;

	datagram->PeekHeader(udp);
	card.flags |= POSTCARD_HAS_PORTS;
	card.src_port = udp.GetSourcePort();
	card.dst_port = udp.GetDestinationPort();
}

struct postcard describe(Ptr<const Packet> packet)
{
	struct postcard card = {};
	Ptr<Packet> copy = packet->Copy();
	Ipv4Header ip;

	copy->RemoveHeader(ip);
	card.version = POSTCARD_VERSION;
	card.flags = POSTCARD_HAS_IP;
	if (ip.GetEcn() != Ipv4Header::ECN_NotECT)
		card.flags |= POSTCARD_ECT;
	card.switch_id = SWITCH_ID;
	card.ingress_port = SENDER_PORT;
	card.egress_port = BOTTLENECK_PORT;
	card.packet_bytes = static_cast<uint16_t>(packet->GetSize() + ETHERNET_BYTES);
	card.ip_protocol = ip.GetProtocol();
	card.src_addr = mapped(ip.GetSource());
	card.dst_addr = mapped(ip.GetDestination());
	if (ip.GetProtocol() == TcpL4Protocol::PROT_NUMBER)
		describe_tcp(card, copy);
	else
		describe_udp(card, copy);
	return card;
}

void mark(Ptr<Packet> packet)
{
	Ipv4Header ip;

	packet->RemoveHeader(ip);
	ip.SetEcn(Ipv4Header::ECN_CE);
	packet->AddHeader(ip);
}

} // namespace

Bottleneck::Bottleneck(const struct scenario &scenario, struct records &postcards, Deliver deliver)
    : scenario(scenario), postcards(postcards), deliver(std::move(deliver))
{
}

/* Whether the queue admits the packet. Sets POSTCARD_CE_MARKED if the packet is to be marked. */
bool Bottleneck::MayEnter(struct postcard &card) const
{
	if (card.depth_packets >= scenario.limit_packets)
		return false;
	if (scenario.mode == EGRESS_THRESHOLD || card.depth_packets < scenario.threshold_packets)
		return true;
	if (scenario.mode == ECN && card.flags & POSTCARD_ECT) {
		card.flags |= POSTCARD_CE_MARKED;
		return true;
	}
	return false;
}

void Bottleneck::Arrive(Ptr<Packet> packet)
{
	struct postcard card = describe(packet);

	counts.arrivals++;
	counts.arrival_bytes += card.packet_bytes;
	card.policy = POLICY[scenario.mode];
	card.threshold = static_cast<uint32_t>(scenario.threshold_packets);
	card.enqueue_switch_ns = now();
	card.depth_packets = static_cast<uint32_t>(queue.size());
	card.depth_bytes = static_cast<uint32_t>(queue_bytes);
	if (!MayEnter(card)) {
		counts.arrival_drops++;
		card.flags |= POSTCARD_DROPPED | POSTCARD_AT_INGRESS;
		Report(card, now());
		return;
	}
	if (card.flags & POSTCARD_CE_MARKED) {
		counts.marks++;
		mark(packet);
	}
	queue.push_back({packet, card});
	queue_bytes += card.packet_bytes;
	counts.deepest_packets = std::max<uint64_t>(counts.deepest_packets, queue.size());
	if (queue.size() == 1)
		StartNext();
}

/* Normally the head's transmission starts when the previous one ends. A packet dropped at departure does not occupy
 * the link: the next packet starts when the dropped packet would have started, but departs no earlier than now.
 */
void Bottleneck::StartNext()
{
	if (queue.empty())
		return;
	const struct postcard &card = queue.front().card;
	const uint64_t wire_bits =
		8 * (std::max<uint64_t>(card.packet_bytes, LEAST_FRAME_BYTES) + WIRE_EXTRA_BYTES);
	const bool waits = card.enqueue_switch_ns <= free_ns;
	const uint64_t numerator = wire_bits * 1000000000 + (waits ? carry : 0);

	head_free_ns = (waits ? free_ns : card.enqueue_switch_ns) + numerator / scenario.rate_bps;
	head_carry = numerator % scenario.rate_bps;
	if (head_free_ns < now()) {
		head_free_ns = now();
		head_carry = 0;
	}
	Simulator::Schedule(NanoSeconds(head_free_ns - now()), &Bottleneck::Depart, this);
}

void Bottleneck::Depart()
{
	Queued head = queue.front();

	queue.pop_front();
	queue_bytes -= head.card.packet_bytes;
	head.card.sojourn_ns = now() - head.card.enqueue_switch_ns;
	if (scenario.mode == EGRESS_THRESHOLD && queue.size() >= scenario.threshold_packets) {
		counts.departure_drops++;
		head.card.flags |= POSTCARD_DROPPED;
		Report(head.card, now());
	} else {
		free_ns = head_free_ns;
		carry = head_carry;
		counts.departed++;
		Report(head.card, now());
		deliver(head.packet);
	}
	StartNext();
}

void Bottleneck::Report(struct postcard &card, uint64_t now_ns)
{
	card.card_seq = next_seq[!!(card.flags & POSTCARD_AT_INGRESS)]++;
	const int err = records_add_postcard(&postcards, now_ns, &card);

	if (err && !error)
		error = err;
}
