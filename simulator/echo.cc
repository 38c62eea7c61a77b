// SPDX-License-Identifier: MIT
#include "echo.h"

#include "ns3/inet-socket-address.h"
#include "ns3/simulator.h"
#include "ns3/udp-socket-factory.h"

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 7;
constexpr uint32_t PAYLOAD_BYTES = 16, SAMPLES = 20;

} // namespace

Echo::Echo(const struct scenario &scenario, Ptr<Node> sender, Ptr<Node> receiver, uint64_t start_ns)
    : scenario(scenario), socket(Socket::CreateSocket(sender, UdpSocketFactory::GetTypeId())),
      answering(Socket::CreateSocket(receiver, UdpSocketFactory::GetTypeId())), left(SAMPLES)
{
	socket->Bind();
	socket->SetRecvCallback(MakeCallback(&Echo::Receive, this));
	answering->Bind(InetSocketAddress(Ipv4Address(scenario.receiver), PORT));
	answering->SetRecvCallback(MakeCallback(&Echo::Answer, this));
	Simulator::ScheduleWithContext(sender->GetId(), NanoSeconds(start_ns), &Echo::Send, this);
}

void Echo::Send()
{
	sent_ns = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
	socket->SendTo(Create<Packet>(PAYLOAD_BYTES), 0,
		       InetSocketAddress(Ipv4Address(scenario.receiver), PORT));
}

void Echo::Answer(Ptr<Socket>)
{
	Address from;
	Ptr<Packet> packet = answering->RecvFrom(from);

	answering->SendTo(packet, 0, from);
}

/* The next request follows the reply at once. */
void Echo::Receive(Ptr<Socket>)
{
	socket->Recv();
	samples_ns.push_back(static_cast<uint64_t>(Simulator::Now().GetNanoSeconds()) - sent_ns);
	if (--left)
		Send();
}
