/* SPDX-License-Identifier: MIT
 * Long TCP flows of ns-3, the sinks of all flows, and a record of each ACK, retransmission and goodput interval.
 */
#ifndef SIMULATOR_FLOWS_H
#define SIMULATOR_FLOWS_H

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ns3/ipv4-address.h"
#include "ns3/node.h"
#include "ns3/socket.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"
#include "records.h"
#include "scenario.h"

/* The sender of a long flow. Its trace has the fields that ns-3 knows. */
class Flow
{
      public:
	Flow(const struct scenario &scenario, uint32_t index, struct records &trace,
	     ns3::Ptr<ns3::Node> node);

	void Connect();
	void Begin();

	bool connected = false, closed = false;
	uint64_t syn_mono_ns = 0, connected_mono_ns = 0, started_mono_ns = 0;
	uint64_t bytes_acked = 0, retransmits = 0, probes = 0;
	int error = 0; /* the first -errno of the trace's file */

	const struct scenario &scenario;
	const uint32_t index;
	const struct scenario_flow &settings;

      private:
	void Fill(ns3::Ptr<ns3::Socket>, uint32_t);
	void Watch();
	void Received(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader &header,
		      ns3::Ptr<const ns3::TcpSocketBase>);
	void Resent(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader &header, const ns3::Address &,
		    const ns3::Address &, ns3::Ptr<const ns3::TcpSocketBase>);
	void Record(uint8_t event, uint32_t seq, uint32_t data_bytes);

	struct records &trace;
	const uint32_t mss_bytes;
	ns3::Ptr<ns3::TcpSocketBase> socket;
	bool sending = false;
	/* The latest values from ns-3's trace sources. */
	uint32_t cwnd_bytes = 0, ssthresh_bytes = UINT32_MAX, in_flight_bytes = 0, snd_nxt = 0, snd_una = 0;
	uint32_t peer_window_bytes = 0, srtt_us = 0;
	uint8_t ca_state = 0;
};

/* Accepts every connection, reads at once, closes when the peer does, and counts payload by flow and interval. */
class Sink
{
      public:
	/* Ports of receiver and sender: no two flows have the same pair. */
	using Ports = std::pair<uint16_t, uint16_t>;

	struct Connection {
		uint64_t first_mono_ns, payload_bytes = 0, reads = 0;
		uint64_t interval_bytes = 0;
		uint32_t interval_reads = 0;
		bool closed = false;
	};

	Sink(const struct scenario &scenario, struct records &goodput, ns3::Ptr<ns3::Node> node);
	/* Writes the last interval. */
	void Close();

	std::map<Ports, Connection> ended; /* after Close: all connections */
	int error = 0;

      private:
	void Accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address &from);
	void Read(ns3::Ptr<ns3::Socket> socket, Connection &connection);
	void EndInterval();

	const struct scenario &scenario;
	struct records &goodput;
	std::map<Ports, Connection> open;
	uint64_t interval_mono_ns = 0;
};

/* The record of a long flow. */
struct flow_record long_flow_record(const struct scenario &scenario, uint32_t index, const Flow &flow);

uint64_t simulated_ns();

#endif
