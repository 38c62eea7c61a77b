// SPDX-License-Identifier: MIT
// The lab's scenario in the ns-3 simulator: senders, a receiver, one bottleneck, TCP flows.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bottleneck.h"
#include "echo.h"
#include "finite_flows.h"
#include "flows.h"
#include "hosts.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "paths.h"
#include "tcp.h"

extern "C" {
#include "lib/report.h"
}

using namespace ns3;

namespace
{

constexpr uint64_t ECHO_START_NS = 1000000; // long before the first SYN: the lab's traffic starts at 60 s

struct Files {
	struct records postcards, trace, goodput, flows; // `flows` only if some flows are finite
};

std::string in(const struct scenario &scenario, const char *name)
{
	return std::string(scenario.directory) + "/" + name;
}

bool has_finite(const struct scenario &scenario)
{
	return scenario.long_count < scenario.flow_count;
}

int create(const struct scenario &scenario, Files &files)
{
	int err = records_create(&files.postcards, in(scenario, "postcards.bsp").c_str(), BLOCK_POSTCARDS,
				 POSTCARD_VERSION, uint16_t{BLOCK_STAMP_BYTES} + uint16_t{POSTCARD_BYTES});

	if (!err)
		err = records_create(&files.trace, in(scenario, "tcp.bst").c_str(), BLOCK_TCP,
				     TCP_RECORD_VERSION, TCP_RECORD_BYTES);
	if (!err)
		err = records_create(&files.goodput, in(scenario, "goodput.bsg").c_str(), BLOCK_GOODPUT,
				     GOODPUT_RECORD_VERSION, GOODPUT_RECORD_BYTES);
	if (!err && has_finite(scenario))
		err = records_create(&files.flows, in(scenario, "flows.bsf").c_str(), BLOCK_FLOWS,
				     FLOW_RECORD_VERSION, FLOW_RECORD_BYTES);
	return err;
}

void write_summary(const struct scenario &scenario, const Files &files, const Bottleneck &queue,
		   const std::vector<std::unique_ptr<Flow>> &flows, const FiniteFlows &finite,
		   const Sink &sink, const Echo &echo, uint64_t end_mono_ns)
{
	std::ofstream out(in(scenario, "simulator.json"));
	uint64_t probes = 0, retransmits = 0;

	for (const auto &flow : flows) {
		probes += flow->probes;
		retransmits += flow->retransmits;
	}
	out << "{\"simulator\": \"ns-3 " NS3_VERSION << "\",\n \"end_mono_ns\": " << end_mono_ns
	    << ",\n \"virtual_time_ns\": " << Simulator::Now().GetNanoSeconds()
	    << ",\n \"events\": " << Simulator::GetEventCount()
	    << ",\n \"arrivals\": " << queue.counts.arrivals
	    << ", \"arrival_bytes\": " << queue.counts.arrival_bytes
	    << ", \"arrival_drops\": " << queue.counts.arrival_drops
	    << ", \"departure_drops\": " << queue.counts.departure_drops
	    << ", \"marks\": " << queue.counts.marks << ", \"departed\": " << queue.counts.departed
	    << ", \"deepest_packets\": " << queue.counts.deepest_packets
	    << ",\n \"postcards_stored\": " << files.postcards.stored
	    << ", \"tcp_stored\": " << files.trace.stored << ", \"goodput_stored\": " << files.goodput.stored
	    << ", \"probes\": " << probes << ", \"retransmits\": " << retransmits << ",\n \"flows\": [";
	for (size_t index = 0; index < flows.size(); index++)
		out << (index ? ",\n  " : "\n  ") << "{\"src_port\": " << flows[index]->settings.client_port
		    << ", \"dst_port\": " << flows[index]->settings.server_port
		    << ", \"started_mono_ns\": " << flows[index]->started_mono_ns
		    << ", \"bytes_acked\": " << flows[index]->bytes_acked
		    << ", \"retransmits\": " << flows[index]->retransmits
		    << ", \"closed\": " << (flows[index]->closed ? "true" : "false") << "}";
	out << "],\n \"idle_rtt_ns\": [";
	for (size_t index = 0; index < echo.samples_ns.size(); index++)
		out << (index ? ", " : "") << echo.samples_ns[index];
	out << "],\n \"sink\": [";
	const char *separator = "\n  ";

	for (const auto &[ports, connection] : sink.ended) {
		out << separator << "{\"src_port\": " << ports.second << ", \"dst_port\": " << ports.first
		    << ", \"bytes\": " << connection.payload_bytes << ", \"reads\": " << connection.reads
		    << ", \"first_mono_ns\": " << connection.first_mono_ns << "}";
		separator = ",\n  ";
	}
	out << "]";
	if (has_finite(scenario))
		out << ",\n \"finite\": {\"planned\": " << scenario.flow_count - scenario.long_count
		    << ", \"begun\": " << finite.counts.begun << ", \"finished\": " << finite.counts.finished
		    << ", \"refused\": " << finite.counts.refused << ", \"reset\": " << finite.counts.reset
		    << ", \"unfinished\": " << finite.counts.open
		    << ", \"most_open\": " << finite.counts.most_open
		    << ", \"records_stored\": " << files.flows.stored
		    << ", \"records_unwritten\": 0, \"lateness_ns\": [[0, " << finite.counts.begun << "]]}";
	out << "}\n";
}

int simulate(const struct scenario &scenario, Files &files)
{
	Paths paths(scenario);
	bool sending = true;
	uint64_t end_mono_ns = scenario.start_mono_ns + scenario.duration_ns;

	set_tcp_defaults(scenario);
	Host receiver;
	Bottleneck queue(scenario, files.postcards, [&](Ptr<Packet> packet) {
		Simulator::ScheduleWithContext(receiver.node->GetId(),
					       NanoSeconds(scenario.data_delay_ns + paths.ExtraDelay(packet)),
					       &Port::Receive, receiver.port, packet);
	});
	const Senders senders(scenario, [&](Ptr<Packet> packet) {
		if (sending)
			Simulator::Schedule(NanoSeconds(paths.AccessDelay(packet)), &Bottleneck::Arrive,
					    &queue, packet);
	});
	const Ptr<Node> sender = senders.First();

	receiver = new_host(scenario, Ipv4Address(scenario.receiver),
			    [&](Ptr<Packet> packet) { senders.Deliver(packet, scenario.ack_delay_ns); });
	Echo echo(scenario, sender, receiver.node, ECHO_START_NS);
	Sink sink(scenario, files.goodput, receiver.node);
	std::vector<std::unique_ptr<Flow>> flows;
	FiniteFlows finite(scenario, files.flows, senders);
	const uint64_t handshakes_ns = 2 * (scenario.data_delay_ns + scenario.ack_delay_ns) + 1000000000;
	const uint64_t first_syn_ns =
		scenario.start_mono_ns -
		std::min(scenario.start_mono_ns,
			 handshakes_ns + scenario.long_count * scenario.connect_interval_ns);

	for (uint32_t index = 0; index < scenario.flow_count; index++) {
		if (scenario.flows[index].bytes)
			continue;
		const uint64_t syn_ns = first_syn_ns + flows.size() * scenario.connect_interval_ns;

		flows.push_back(std::make_unique<Flow>(scenario, index, files.trace, sender));
		Simulator::ScheduleWithContext(sender->GetId(), NanoSeconds(syn_ns), &Flow::Connect,
					       flows.back().get());
		Simulator::ScheduleWithContext(
			sender->GetId(), NanoSeconds(scenario.start_mono_ns + scenario.flows[index].start_ns),
			&Flow::Begin, flows.back().get());
		end_mono_ns = std::max(end_mono_ns, scenario.start_mono_ns + scenario.flows[index].start_ns +
							    scenario.duration_ns);
	}
	// The senders' ports go down at the end, so that the queue runs empty: every arrival has its postcard.
	// Before that, unfinished flows get their records, and so do long flows if there are finite ones, too.
	finite.Plan(end_mono_ns);
	Simulator::Schedule(NanoSeconds(end_mono_ns), [&] {
		finite.End();
		for (const auto &flow : flows) {
			const struct flow_record record = long_flow_record(scenario, flow->index, *flow);

			if (has_finite(scenario) && records_add_flow(&files.flows, &record) && !finite.error)
				finite.error = -EIO;
		}
		sending = false;
	});
	Simulator::Stop(NanoSeconds(end_mono_ns + scenario.drain_ns));
	Simulator::Run();
	sink.Close();
	write_summary(scenario, files, queue, flows, finite, sink, echo, end_mono_ns);
	int err = queue.error ? queue.error : sink.error ? sink.error : finite.error;

	for (const auto &flow : flows) {
		if (!err)
			err = flow->error;
		if (!flow->connected) {
			complain("a long flow did not connect before the end of the simulation");
			err = err ? err : -ETIMEDOUT;
			break;
		}
	}
	Simulator::Destroy();
	return err;
}

} // namespace

int main(int argc, char **argv)
{
	struct scenario scenario;
	Files files = {};
	int err = scenario_read(&scenario, argc, argv);

	if (err)
		return err > 0 ? 0 : EXIT_REFUSED;
	err = create(scenario, files);
	if (err) {
		complain("creating raw files in %s: %s", scenario.directory, strerror(-err));
		return EXIT_REFUSED;
	}
	RngSeedManager::SetSeed(static_cast<uint32_t>(scenario.seed));
	err = simulate(scenario, files);
	for (struct records *records : {&files.postcards, &files.trace, &files.goodput, &files.flows}) {
		const int close_err = records->block ? records_close(records) : 0;

		err = err ? err : close_err;
	}
	if (err)
		complain("simulating: %s", strerror(-err));
	return err ? EXIT_INCOMPLETE : 0;
}
