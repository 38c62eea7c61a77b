// SPDX-License-Identifier: MIT
#include "tcp.h"

#include <algorithm>

#include "lib/frames.h"
#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/object-factory.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/uinteger.h"

using namespace ns3;

namespace
{

constexpr uint32_t TCP_BYTES = 20, TIMESTAMP_OPTION_BYTES = 12;
/* How long ns-3 keeps a closed socket. No two flows have the same ports, so this time only affects memory. */
constexpr double TIME_WAIT_S = 1;
constexpr uint32_t LEAST_BUFFER_BYTES = 1 << 20, MOST_BUFFER_BYTES = 1 << 30;
constexpr uint16_t EXACT_PACE_PERCENT = 100, LINUX_SLOW_START_PERCENT = 200, LINUX_PERCENT = 120;

/* Wraps a congestion control and bounds its window, as Linux's snd_cwnd_clamp does. */
class BoundedWindow : public TcpCongestionOps
{
      public:
	BoundedWindow(Ptr<TcpCongestionOps> control, uint32_t most_packets)
	    : control(control), most_packets(most_packets)
	{
	}

	std::string GetName() const override
	{
		return control->GetName();
	}
	void Init(Ptr<TcpSocketState> tcb) override
	{
		control->Init(tcb);
	}
	uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t bytes_in_flight) override
	{
		return control->GetSsThresh(tcb, bytes_in_flight);
	}
	void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segments_acked) override
	{
		control->IncreaseWindow(tcb, segments_acked);
		Bound(tcb);
	}
	void PktsAcked(Ptr<TcpSocketState> tcb, uint32_t segments_acked, const Time &rtt) override
	{
		control->PktsAcked(tcb, segments_acked, rtt);
	}
	void CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t state) override
	{
		control->CongestionStateSet(tcb, state);
		Bound(tcb);
	}
	void CwndEvent(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCAEvent_t event) override
	{
		control->CwndEvent(tcb, event);
	}
	bool HasCongControl() const override
	{
		return control->HasCongControl();
	}
	void CongControl(Ptr<TcpSocketState> tcb, const TcpRateOps::TcpRateConnection &connection,
			 const TcpRateOps::TcpRateSample &sample) override
	{
		control->CongControl(tcb, connection, sample);
		Bound(tcb);
	}
	Ptr<TcpCongestionOps> Fork() override
	{
		return CreateObject<BoundedWindow>(control->Fork(), most_packets);
	}

      private:
	void Bound(Ptr<TcpSocketState> tcb) const
	{
		const uint32_t most_bytes = most_packets * tcb->m_segmentSize;

		if (tcb->m_cWnd > most_bytes)
			tcb->m_cWnd = most_bytes;
	}

	Ptr<TcpCongestionOps> control;
	const uint32_t most_packets;
};

uint32_t buffer_bytes(const struct scenario &scenario)
{
	uint64_t extra_ns = 0;

	for (uint32_t index = 0; index < scenario.flow_count; index++)
		extra_ns = std::max(extra_ns, scenario.flows[index].extra_delay_ns);
	const double bdp_bytes =
		static_cast<double>(scenario.rate_bps) / 8e9 *
		static_cast<double>(scenario.data_delay_ns + scenario.ack_delay_ns + extra_ns);
	const double most_bytes =
		2 * (bdp_bytes + static_cast<double>(scenario.limit_packets * scenario.mtu_bytes));

	return static_cast<uint32_t>(std::clamp<double>(most_bytes, LEAST_BUFFER_BYTES, MOST_BUFFER_BYTES));
}

void set_pacing_defaults(const struct scenario &scenario)
{
	const bool exact = scenario.pacing == EXACT_PACING;

	Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(scenario.pacing != NO_PACING));
	Config::SetDefault("ns3::TcpSocketState::PacingSsRatio",
			   UintegerValue(exact ? EXACT_PACE_PERCENT : LINUX_SLOW_START_PERCENT));
	Config::SetDefault("ns3::TcpSocketState::PacingCaRatio",
			   UintegerValue(exact ? EXACT_PACE_PERCENT : LINUX_PERCENT));
}

} // namespace

uint32_t mss(const struct scenario &scenario)
{
	return static_cast<uint32_t>(scenario.mtu_bytes) - IPV4_BYTES - TCP_BYTES - TIMESTAMP_OPTION_BYTES;
}

uint64_t mapped_low(Ipv4Address address)
{
	return uint64_t{0xffff} << 32 | address.Get();
}

void set_tcp_defaults(const struct scenario &scenario)
{
	const uint64_t most = scenario.window_packets ? scenario.window_packets : UINT64_MAX;
	const uint32_t socket_bytes =
		scenario.socket_bytes ? static_cast<uint32_t>(scenario.socket_bytes) : buffer_bytes(scenario);

	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss(scenario)));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd",
			   UintegerValue(std::min(scenario.initial_window, most)));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(scenario.acks == EACH_ACK ? 1 : 2));
	Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socket_bytes));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socket_bytes));
	Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(!scenario.no_sack));
	Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
	Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(TIME_WAIT_S / 2));
	Config::SetDefault("ns3::TcpSocketBase::UseEcn",
			   EnumValue(scenario.mode == ECN ? TcpSocketState::On : TcpSocketState::Off));
	set_pacing_defaults(scenario);
}

Ptr<TcpSocketBase> sending_socket(const struct scenario &scenario, Ptr<Node> node,
				  const struct scenario_flow &flow)
{
	const TypeId type = TypeId::LookupByName(flow.type);
	Ptr<TcpSocketBase> socket =
		DynamicCast<TcpSocketBase>(node->GetObject<TcpL4Protocol>()->CreateSocket(type));

	if (scenario.window_packets) {
		ObjectFactory factory;

		factory.SetTypeId(type);
		socket->SetCongestionControlAlgorithm(CreateObject<BoundedWindow>(
			factory.Create<TcpCongestionOps>(), static_cast<uint32_t>(scenario.window_packets)));
	}
	return socket;
}

InetSocketAddress source_of(const struct scenario &scenario, const struct scenario_flow &flow)
{
	return {flow.source ? Ipv4Address(flow.source) : Ipv4Address(scenario.sender), flow.client_port};
}
