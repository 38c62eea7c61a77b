/* SPDX-License-Identifier: MIT
 * Measures the RTT of the idle path with datagrams as long as the lab's echo requests (hosts/traffic/idle_rtt.py).
 */
#ifndef SIMULATOR_ECHO_H
#define SIMULATOR_ECHO_H

#include <vector>

#include "ns3/node.h"
#include "ns3/socket.h"
#include "scenario.h"

class Echo
{
      public:
	/* Schedules the measurement from start_ns on. */
	Echo(const struct scenario &scenario, ns3::Ptr<ns3::Node> sender, ns3::Ptr<ns3::Node> receiver,
	     uint64_t start_ns);

	std::vector<uint64_t> samples_ns;

      private:
	void Send();
	void Answer(ns3::Ptr<ns3::Socket> socket);
	void Receive(ns3::Ptr<ns3::Socket> socket);

	const struct scenario &scenario;
	ns3::Ptr<ns3::Socket> socket, answering;
	uint64_t sent_ns = 0;
	uint32_t left;
};

#endif
