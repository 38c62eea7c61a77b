// SPDX-License-Identifier: MIT
#include "flows.h"

#include "ns3/inet-socket-address.h"
#include "ns3/simulator.h"
#include "ns3/tcp-socket-factory.h"
#include "tcp.h"

using namespace ns3;

namespace
{

constexpr uint64_t bit(int field)
{
	return uint64_t{1} << field;
}

/* Fields that ns-3 does not have. The counts by which Linux corrects packets_out are not among them: they are 0,
 * because ns-3 has a single count of the data in flight.
 */
constexpr uint64_t UNKNOWN = bit(TCP_FIELD_pacing_rate_bytes_per_s) | bit(TCP_FIELD_delivered_packets) |
			     bit(TCP_FIELD_rcv_wnd_bytes) | bit(TCP_FIELD_rtt_min_us) |
			     bit(TCP_FIELD_rate_delivered_packets) | bit(TCP_FIELD_rate_interval_us) |
			     bit(TCP_FIELD_netns_inode) | bit(TCP_FIELD_cpu);

} // namespace

uint64_t simulated_ns()
{
	return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

Flow::Flow(const struct scenario &scenario, uint32_t index, struct records &trace, Ptr<Node> node)
    : scenario(scenario), index(index), settings(scenario.flows[index]), trace(trace),
      mss_bytes(mss(scenario)), socket(sending_socket(scenario, node, settings))
{
	Watch();
}

void Flow::Watch()
{
	socket->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::Received, this));
	socket->TraceConnectWithoutContext("Retransmission", MakeCallback(&Flow::Resent, this));
	socket->TraceConnectWithoutContext(
		"CongestionWindow",
		Callback<void, uint32_t, uint32_t>([this](uint32_t, uint32_t bytes) { cwnd_bytes = bytes; }));
	socket->TraceConnectWithoutContext(
		"SlowStartThreshold", Callback<void, uint32_t, uint32_t>(
					      [this](uint32_t, uint32_t bytes) { ssthresh_bytes = bytes; }));
	socket->TraceConnectWithoutContext(
		"BytesInFlight", Callback<void, uint32_t, uint32_t>(
					 [this](uint32_t, uint32_t bytes) { in_flight_bytes = bytes; }));
	socket->TraceConnectWithoutContext(
		"HighestSequence",
		Callback<void, SequenceNumber32, SequenceNumber32>(
			[this](SequenceNumber32, SequenceNumber32 seq) { snd_nxt = seq.GetValue(); }));
	socket->TraceConnectWithoutContext("RTT", Callback<void, Time, Time>([this](Time, Time rtt) {
						   srtt_us = static_cast<uint32_t>(rtt.GetMicroSeconds());
					   }));
	socket->TraceConnectWithoutContext(
		"CongState",
		Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
			[this](TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state) {
				ca_state = static_cast<uint8_t>(state); /* numbered as in Linux */
			}));
}

void Flow::Connect()
{
	syn_mono_ns = simulated_ns();
	socket->Bind(source_of(scenario, settings));
	socket->SetConnectCallback(Callback<void, Ptr<Socket>>([this](Ptr<Socket>) {
					   connected = true;
					   connected_mono_ns = simulated_ns();
				   }),
				   Callback<void, Ptr<Socket>>([this](Ptr<Socket>) { closed = true; }));
	socket->SetCloseCallbacks(Callback<void, Ptr<Socket>>([this](Ptr<Socket>) { closed = true; }),
				  Callback<void, Ptr<Socket>>([this](Ptr<Socket>) { closed = true; }));
	socket->Connect(InetSocketAddress(Ipv4Address(scenario.receiver), settings.server_port));
}

void Flow::Begin()
{
	sending = true;
	started_mono_ns = simulated_ns();
	socket->SetSendCallback(MakeCallback(&Flow::Fill, this));
	Fill(socket, socket->GetTxAvailable());
}

void Flow::Fill(Ptr<Socket>, uint32_t)
{
	while (uint32_t room = socket->GetTxAvailable())
		if (socket->Send(Create<Packet>(room), 0) < 0)
			break;
}

void Flow::Record(uint8_t event, uint32_t seq, uint32_t data_bytes)
{
	struct tcp_record record = {};

	record.mono_ns = simulated_ns();
	record.socket_cookie = index + 1;
	record.snd_nxt = snd_nxt;
	record.snd_una = snd_una;
	record.event_seq = seq;
	record.cwnd_packets = cwnd_bytes / mss_bytes;
	record.ssthresh_packets = ssthresh_bytes == UINT32_MAX ? INT32_MAX : ssthresh_bytes / mss_bytes;
	record.packets_out = (in_flight_bytes + mss_bytes - 1) / mss_bytes;
	record.snd_wnd_bytes = peer_window_bytes;
	record.srtt_us = srtt_us;
	record.mss_bytes = mss_bytes;
	record.src_port = settings.client_port;
	record.dst_port = settings.server_port;
	record.data_bytes = static_cast<uint16_t>(data_bytes);
	record.event = event;
	record.ca_state = ca_state;
	record.src_addr_lo = mapped_low(Ipv4Address(scenario.sender));
	record.dst_addr_lo = mapped_low(Ipv4Address(scenario.receiver));
	record.unknown_fields = UNKNOWN;
	const int err = records_add_tcp(&trace, &record);

	if (err && !error)
		error = err;
}

/* Runs before the socket handles the segment, as tcp_probe does. Like tcp_probe, records nothing of the handshake. */
void Flow::Received(Ptr<const Packet> packet, const TcpHeader &header, Ptr<const TcpSocketBase>)
{
	const uint32_t ack = header.GetAckNumber().GetValue();

	peer_window_bytes = header.GetWindowSize();
	if (!(header.GetFlags() & TcpHeader::SYN)) {
		probes++;
		Record(TCP_EVENT_PROBE, header.GetSequenceNumber().GetValue(), packet->GetSize());
	}
	if (static_cast<int32_t>(ack - snd_una) > 0) {
		if (sending)
			bytes_acked += ack - snd_una;
		snd_una = ack;
	}
}

void Flow::Resent(Ptr<const Packet> packet, const TcpHeader &header, const Address &, const Address &,
		  Ptr<const TcpSocketBase>)
{
	retransmits++;
	Record(TCP_EVENT_RETRANSMIT, header.GetSequenceNumber().GetValue(), packet->GetSize());
}

struct flow_record long_flow_record(const struct scenario &scenario, uint32_t index, const Flow &flow)
{
	struct flow_record record = {};

	record.syn_mono_ns = flow.syn_mono_ns;
	record.connected_mono_ns = flow.connected_mono_ns;
	record.started_mono_ns = flow.started_mono_ns;
	record.acked_bytes = flow.bytes_acked;
	record.src_addr_lo = mapped_low(Ipv4Address(scenario.sender));
	record.dst_addr_lo = mapped_low(Ipv4Address(scenario.receiver));
	record.line = index;
	record.retransmits = static_cast<uint32_t>(flow.retransmits);
	record.min_rtt_us = UINT32_MAX;
	record.mss_bytes = mss(scenario);
	record.src_port = scenario.flows[index].client_port;
	record.dst_port = scenario.flows[index].server_port;
	record.timeouts = FLOW_TIMEOUTS_UNKNOWN;
	record.end = FLOW_END_LONG;
	return record;
}

Sink::Sink(const struct scenario &scenario, struct records &goodput, Ptr<Node> node)
    : scenario(scenario), goodput(goodput)
{
	std::map<uint16_t, bool> listening;

	for (uint32_t index = 0; index < scenario.flow_count; index++) {
		const uint16_t port = scenario.flows[index].server_port;

		if (std::exchange(listening[port], true))
			continue;
		Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());

		socket->Bind(InetSocketAddress(Ipv4Address(scenario.receiver), port));
		socket->Listen();
		socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
					  MakeCallback(&Sink::Accept, this));
	}
}

void Sink::Accept(Ptr<Socket> socket, const Address &from)
{
	Address local;

	socket->GetSockName(local);
	const Ports ports = {InetSocketAddress::ConvertFrom(local).GetPort(),
			     InetSocketAddress::ConvertFrom(from).GetPort()};

	open[ports] = {simulated_ns()};
	socket->SetRecvCallback(Callback<void, Ptr<Socket>>(
		[this, ports](Ptr<Socket> readable) { Read(readable, open.at(ports)); }));
	socket->SetCloseCallbacks(Callback<void, Ptr<Socket>>([this, ports](Ptr<Socket> closing) {
					  closing->Close();
					  open.at(ports).closed = true;
					  closing->SetRecvCallback(MakeNullCallback<void, Ptr<Socket>>());
					  closing->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(),
								     MakeNullCallback<void, Ptr<Socket>>());
				  }),
				  MakeNullCallback<void, Ptr<Socket>>());
}

void Sink::Read(Ptr<Socket> socket, Connection &connection)
{
	if (!interval_mono_ns) {
		interval_mono_ns = simulated_ns() - simulated_ns() % scenario.goodput_interval_ns;
		Simulator::Schedule(
			NanoSeconds(interval_mono_ns + scenario.goodput_interval_ns - simulated_ns()),
			&Sink::EndInterval, this);
	}
	while (Ptr<Packet> packet = socket->Recv()) {
		if (!packet->GetSize())
			break;
		connection.interval_bytes += packet->GetSize();
		connection.interval_reads++;
	}
}

void Sink::EndInterval()
{
	for (auto each = open.begin(); each != open.end();) {
		auto &[ports, connection] = *each;

		if (connection.interval_reads) {
			struct goodput_record record = {};

			record.interval_mono_ns = interval_mono_ns;
			record.payload_bytes = connection.interval_bytes;
			record.reads = connection.interval_reads;
			record.src_port = ports.second;
			record.dst_port = ports.first;
			connection.payload_bytes += connection.interval_bytes;
			connection.reads += connection.interval_reads;
			connection.interval_bytes = connection.interval_reads = 0;
			const int err = records_add_goodput(&goodput, &record);

			if (err && !error)
				error = err;
		}
		if (connection.closed) {
			ended.insert(*each);
			each = open.erase(each);
		} else {
			++each;
		}
	}
	interval_mono_ns = 0;
}

void Sink::Close()
{
	EndInterval();
	ended.merge(open);
}
