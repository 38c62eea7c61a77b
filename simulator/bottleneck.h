/* SPDX-License-Identifier: MIT
 * The bottleneck: one FIFO queue with a policy, a link, and a postcard of every packet. Implements the semantics of the
 * soft switch with our P4 program a second time, on purpose: `make replay BUF=...` puts the arrivals of a simulated run
 * through the first implementation, so that the two can be compared.
 */
#ifndef SIMULATOR_BOTTLENECK_H
#define SIMULATOR_BOTTLENECK_H

#include <deque>
#include <functional>

#include "ns3/packet.h"
#include "records.h"
#include "scenario.h"

class Bottleneck
{
      public:
	/* deliver gets an IP packet when its last bit has left. */
	using Deliver = std::function<void(ns3::Ptr<ns3::Packet>)>;

	struct Counts {
		uint64_t arrivals, arrival_bytes, arrival_drops, departure_drops, marks, departed,
			deepest_packets;
	};

	Bottleneck(const struct scenario &scenario, struct records &postcards, Deliver deliver);

	/* An IP packet reaches the queue now. */
	void Arrive(ns3::Ptr<ns3::Packet> packet);

	Counts counts = {};
	int error = 0; /* the first -errno of the postcards' file */

      private:
	struct Queued {
		ns3::Ptr<ns3::Packet> packet;
		struct postcard card;
	};

	bool MayEnter(struct postcard &card) const;
	void StartNext();
	void Depart();
	void Report(struct postcard &card, uint64_t now_ns);

	const struct scenario &scenario;
	struct records &postcards;
	Deliver deliver;
	std::deque<Queued> queue; /* the front is in transmission */
	uint64_t queue_bytes = 0;
	/* The link is free at exactly free_ns + carry / rate_bps ns. head_free_ns and head_carry replace the two when
	 * the head of the queue departs; if the head is dropped, they do not. */
	uint64_t free_ns = 0, carry = 0;
	uint64_t head_free_ns = 0, head_carry = 0;
	uint32_t next_seq[2] = {};
};

#endif
