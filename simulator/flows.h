/* SPDX-License-Identifier: MIT
 * Long TCP flows of ns-3 and their sinks, and the record of each ACK, retransmission and interval of goodput.
 */
#ifndef SIMULATOR_FLOWS_H
#define SIMULATOR_FLOWS_H

#include <map>
#include <memory>
#include <vector>

#include "ns3/ipv4-address.h"
#include "ns3/node.h"
#include "ns3/socket.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"
#include "records.h"
#include "scenario.h"

/* A sender. Its trace has the fields that ns-3 knows. */
class Flow
{
      public:
	Flow(const struct scenario &scenario, uint32_t index, struct records &trace,
	     ns3::Ptr<ns3::Node> node);

	void Connect();
	void Begin();

	bool connected = false, closed = false;
	uint64_t started_mono_ns = 0, bytes_acked = 0, retransmits = 0, probes = 0;
	int error = 0; /* the first -errno of the trace's file */

      private:
	void Fill(ns3::Ptr<ns3::Socket>, uint32_t);
	void Watch();
	void Received(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader &header,
		      ns3::Ptr<const ns3::TcpSocketBase>);
	void Resent(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader &header, const ns3::Address &,
		    const ns3::Address &, ns3::Ptr<const ns3::TcpSocketBase>);
	void Record(uint8_t event, uint32_t seq, uint32_t data_bytes);

	const struct scenario &scenario;
	const struct scenario_flow &settings;
	const uint32_t index;
	struct records &trace;
	const uint32_t mss_bytes;
	ns3::Ptr<ns3::TcpSocketBase> socket;
	bool sending = false;
	/* As ns-3's trace sources told them last. */
	uint32_t cwnd_bytes = 0, ssthresh_bytes = UINT32_MAX, in_flight_bytes = 0, snd_nxt = 0, snd_una = 0;
	uint32_t peer_window_bytes = 0, srtt_us = 0;
	uint8_t ca_state = 0;
};

/* Accepts every connection, reads at once, and counts payload by flow and interval. */
class Sink
{
      public:
	Sink(const struct scenario &scenario, struct records &goodput, ns3::Ptr<ns3::Node> node);
	/* Writes the last interval. */
	void Close();

	struct Connection {
		uint16_t src_port, dst_port;
		uint64_t first_mono_ns, payload_bytes = 0, reads = 0;
		uint64_t interval_bytes = 0;
		uint32_t interval_reads = 0;
	};

	std::map<ns3::Ptr<ns3::Socket>, Connection> connections;
	int error = 0;

      private:
	void Accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address &from);
	void Read(ns3::Ptr<ns3::Socket> socket);
	void EndInterval();

	const struct scenario &scenario;
	struct records &goodput;
	uint64_t interval_mono_ns = 0;
};

/* TCP as Linux has it by default, as far as ns-3 has it too. */
void set_tcp_defaults(const struct scenario &scenario);

#endif
