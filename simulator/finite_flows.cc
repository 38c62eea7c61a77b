// SPDX-License-Identifier: MIT
#include "finite_flows.h"

#include <algorithm>

#include "flows.h"
#include "ns3/inet-socket-address.h"
#include "ns3/simulator.h"
#include "tcp.h"

using namespace ns3;

class FiniteFlows::Sender
{
      public:
	Sender(FiniteFlows &flows, uint32_t index);

	void Connect();
	/* Removes all callbacks from the socket. */
	void Leave();
	struct flow_record Record() const;

	const uint32_t index;
	uint64_t ended_mono_ns = 0;

      private:
	void Connected(Ptr<Socket>);
	void Fill(Ptr<Socket>, uint32_t);
	void Received(Ptr<const Packet>, const TcpHeader &header, Ptr<const TcpSocketBase>);
	void Resent(Ptr<const Packet>, const TcpHeader &, const Address &, const Address &,
		    Ptr<const TcpSocketBase>);
	void Changed(TcpSocket::TcpStates_t, TcpSocket::TcpStates_t state);
	void Smoothed(Time, Time rtt);
	void Sampled(Time, Time rtt);
	void End(uint8_t end);

	FiniteFlows &flows;
	const struct scenario_flow &settings;
	Ptr<TcpSocketBase> socket;
	uint64_t left_bytes, syn_mono_ns = 0, connected_mono_ns = 0, started_mono_ns = 0, acked_bytes = 0;
	uint32_t snd_una = 0, retransmits = 0, srtt_us = 0, min_rtt_us = UINT32_MAX;
	bool ended = false;
};

FiniteFlows::Sender::Sender(FiniteFlows &flows, uint32_t index)
    : index(index), flows(flows), settings(flows.scenario.flows[index]),
      socket(sending_socket(flows.scenario, flows.senders.Of(settings), settings)), left_bytes(settings.bytes)
{
	socket->TraceConnectWithoutContext("Rx", MakeCallback(&Sender::Received, this));
	socket->TraceConnectWithoutContext("Retransmission", MakeCallback(&Sender::Resent, this));
	socket->TraceConnectWithoutContext("State", MakeCallback(&Sender::Changed, this));
	socket->TraceConnectWithoutContext("RTT", MakeCallback(&Sender::Smoothed, this));
	socket->TraceConnectWithoutContext("LastRTT", MakeCallback(&Sender::Sampled, this));
}

void FiniteFlows::Sender::Connect()
{
	syn_mono_ns = simulated_ns();
	socket->Bind(source_of(flows.scenario, settings));
	socket->SetConnectCallback(
		MakeCallback(&Sender::Connected, this),
		Callback<void, Ptr<Socket>>([this](Ptr<Socket>) { End(FLOW_END_REFUSED); }));
	socket->SetCloseCallbacks(Callback<void, Ptr<Socket>>([](Ptr<Socket>) {}),
				  Callback<void, Ptr<Socket>>([this](Ptr<Socket>) { End(FLOW_END_RESET); }));
	socket->Connect(InetSocketAddress(Ipv4Address(flows.scenario.receiver), settings.server_port));
}

void FiniteFlows::Sender::Connected(Ptr<Socket>)
{
	connected_mono_ns = started_mono_ns = simulated_ns();
	socket->SetSendCallback(MakeCallback(&Sender::Fill, this));
	Fill(socket, 0);
}

void FiniteFlows::Sender::Fill(Ptr<Socket>, uint32_t)
{
	while (left_bytes) {
		const uint64_t size = std::min<uint64_t>(left_bytes, socket->GetTxAvailable());

		if (!size || socket->Send(Create<Packet>(static_cast<uint32_t>(size)), 0) < 0)
			return;
		left_bytes -= size;
		if (!left_bytes)
			socket->Close();
	}
}

/* Runs before the socket handles the segment. The FIN takes a sequence number, but is no byte of the flow. */
void FiniteFlows::Sender::Received(Ptr<const Packet>, const TcpHeader &header, Ptr<const TcpSocketBase>)
{
	const uint32_t ack = header.GetAckNumber().GetValue();

	if (connected_mono_ns && static_cast<int32_t>(ack - snd_una) > 0)
		acked_bytes = std::min(acked_bytes + (ack - snd_una), settings.bytes);
	if (!connected_mono_ns || static_cast<int32_t>(ack - snd_una) > 0)
		snd_una = ack;
}

void FiniteFlows::Sender::Resent(Ptr<const Packet>, const TcpHeader &, const Address &, const Address &,
				 Ptr<const TcpSocketBase>)
{
	retransmits++;
}

void FiniteFlows::Sender::Smoothed(Time, Time rtt)
{
	srtt_us = static_cast<uint32_t>(rtt.GetMicroSeconds());
}

void FiniteFlows::Sender::Sampled(Time, Time rtt)
{
	min_rtt_us = std::min(min_rtt_us, static_cast<uint32_t>(rtt.GetMicroSeconds()));
}

/* In these states the FIN has been acknowledged. */
void FiniteFlows::Sender::Changed(TcpSocket::TcpStates_t, TcpSocket::TcpStates_t state)
{
	if (state == TcpSocket::FIN_WAIT_2 || state == TcpSocket::TIME_WAIT)
		End(FLOW_END_FINISHED);
}

void FiniteFlows::Sender::End(uint8_t end)
{
	if (ended)
		return;
	ended = true;
	ended_mono_ns = simulated_ns();
	flows.Ended(*this, end);
}

void FiniteFlows::Sender::Leave()
{
	socket->TraceDisconnectWithoutContext("Rx", MakeCallback(&Sender::Received, this));
	socket->TraceDisconnectWithoutContext("Retransmission", MakeCallback(&Sender::Resent, this));
	socket->TraceDisconnectWithoutContext("State", MakeCallback(&Sender::Changed, this));
	socket->TraceDisconnectWithoutContext("RTT", MakeCallback(&Sender::Smoothed, this));
	socket->TraceDisconnectWithoutContext("LastRTT", MakeCallback(&Sender::Sampled, this));
	socket->SetSendCallback(MakeNullCallback<void, Ptr<Socket>, uint32_t>());
	socket->SetConnectCallback(MakeNullCallback<void, Ptr<Socket>>(),
				   MakeNullCallback<void, Ptr<Socket>>());
	socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(),
				  MakeNullCallback<void, Ptr<Socket>>());
}

/* ns-3 reports neither a sender's timeouts nor the times in which it was limited. */
struct flow_record FiniteFlows::Sender::Record() const
{
	struct flow_record record = {};

	record.syn_mono_ns = syn_mono_ns;
	record.connected_mono_ns = connected_mono_ns;
	record.started_mono_ns = started_mono_ns;
	record.ended_mono_ns = ended_mono_ns;
	record.size_bytes = settings.bytes;
	record.acked_bytes = acked_bytes;
	record.src_addr_lo = mapped_low(source_of(flows.scenario, settings).GetIpv4());
	record.dst_addr_lo = mapped_low(Ipv4Address(flows.scenario.receiver));
	record.line = index;
	record.user = static_cast<uint32_t>(settings.user);
	record.retransmits = retransmits;
	record.min_rtt_us = min_rtt_us;
	record.srtt_us = srtt_us;
	record.mss_bytes = connected_mono_ns ? mss(flows.scenario) : 0;
	record.src_port = settings.client_port;
	record.dst_port = settings.server_port;
	record.timeouts = FLOW_TIMEOUTS_UNKNOWN;
	return record;
}

FiniteFlows::FiniteFlows(const struct scenario &scenario, struct records &file, const Senders &senders)
    : scenario(scenario), file(file), senders(senders), next(scenario.flow_count)
{
}

FiniteFlows::~FiniteFlows() = default;

void FiniteFlows::Plan(uint64_t end_mono_ns)
{
	std::unordered_map<uint64_t, uint32_t> last; // the latest flow of each user

	this->end_mono_ns = end_mono_ns;
	for (uint32_t index = 0; index < scenario.flow_count; index++) {
		const struct scenario_flow &flow = scenario.flows[index];

		if (!flow.bytes)
			continue;
		if (flow.user && last.count(flow.user))
			next[last[flow.user]] = index;
		else
			Schedule(index, scenario.start_mono_ns + flow.start_ns);
		if (flow.user)
			last[flow.user] = index;
	}
}

void FiniteFlows::Schedule(uint32_t index, uint64_t mono_ns)
{
	if (mono_ns < end_mono_ns)
		Simulator::ScheduleWithContext(senders.First()->GetId(),
					       NanoSeconds(mono_ns - simulated_ns()), &FiniteFlows::Begin,
					       this, index);
}

void FiniteFlows::Begin(uint32_t index)
{
	std::unique_ptr<Sender> &sender = open[index];

	sender = std::make_unique<Sender>(*this, index);
	counts.begun++;
	counts.open++;
	counts.most_open = std::max(counts.most_open, counts.open);
	sender->Connect();
}

/* The sender calls Ended from a callback of its socket, so the sender is destroyed later. */
void FiniteFlows::Ended(Sender &sender, uint8_t end)
{
	const uint32_t index = sender.index, follower = next[index];

	Store(sender, end);
	counts.open--;
	(end == FLOW_END_FINISHED  ? counts.finished
	 : end == FLOW_END_REFUSED ? counts.refused
				   : counts.reset)++;
	Simulator::ScheduleNow([this, index] {
		open.at(index)->Leave();
		open.erase(index);
	});
	if (follower)
		Schedule(follower, simulated_ns() + scenario.flows[follower].start_ns);
}

void FiniteFlows::End()
{
	std::vector<uint32_t> unfinished;

	for (const auto &[index, sender] : open)
		if (!sender->ended_mono_ns)
			unfinished.push_back(index);
	std::sort(unfinished.begin(), unfinished.end());
	for (const uint32_t index : unfinished) {
		Store(*open.at(index), FLOW_END_UNFINISHED);
		open.at(index)->Leave();
	}
}

void FiniteFlows::Store(const Sender &sender, uint8_t end)
{
	struct flow_record record = sender.Record();

	record.end = end;
	const int err = records_add_flow(&file, &record);

	if (err && !error)
		error = err;
}
