/* SPDX-License-Identifier: MIT
 * Finite TCP flows of ns-3: each connects at its time, sends its bytes, closes, and leaves a record as tcp_flows does
 * (hosts/traffic). Only open flows have a Sender in memory; ns-3 keeps their sockets up to 1 s longer (tcp.cc). Finite
 * flows are not traced.
 */
#ifndef SIMULATOR_FINITE_FLOWS_H
#define SIMULATOR_FINITE_FLOWS_H

#include <memory>
#include <unordered_map>
#include <vector>

#include "hosts.h"
#include "ns3/socket.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"
#include "records.h"
#include "scenario.h"

class FiniteFlows
{
      public:
	struct Counts {
		uint64_t begun, finished, refused, reset, open, most_open;
	};

	FiniteFlows(const struct scenario &scenario, struct records &file, const Senders &senders);
	~FiniteFlows();

	/* Schedules every flow that waits for no other. No flow begins at end_mono_ns or later. */
	void Plan(uint64_t end_mono_ns);

	/* Call at the end of the traffic: records the flows that are still open as unfinished. */
	void End();

	Counts counts = {};
	int error = 0; /* the first -errno of the records' file */

      private:
	class Sender;

	void Schedule(uint32_t index, uint64_t mono_ns);
	void Begin(uint32_t index);
	void Ended(Sender &sender, uint8_t end);
	void Store(const Sender &sender, uint8_t end);

	const struct scenario &scenario;
	struct records &file;
	const Senders &senders;
	uint64_t end_mono_ns = 0;
	std::vector<uint32_t>
		next; /* by flow: the same user's next flow; 0: none (flow 0 is nobody's next flow) */
	std::unordered_map<uint32_t, std::unique_ptr<Sender>> open;
};

#endif
