/* SPDX-License-Identifier: MIT
 * ns-3's TCP with the defaults of Linux, as far as ns-3 has them, and with the options of the scenario.
 */
#ifndef SIMULATOR_TCP_H
#define SIMULATOR_TCP_H

#include "ns3/inet-socket-address.h"
#include "ns3/node.h"
#include "ns3/tcp-socket-base.h"
#include "scenario.h"

void set_tcp_defaults(const struct scenario &scenario);

/* A sender's socket, not yet bound. */
ns3::Ptr<ns3::TcpSocketBase> sending_socket(const struct scenario &scenario, ns3::Ptr<ns3::Node> node,
					    const struct scenario_flow &flow);

ns3::InetSocketAddress source_of(const struct scenario &scenario, const struct scenario_flow &flow);

uint32_t mss(const struct scenario &scenario);
/* The low 64 bits of the IPv4-mapped IPv6 address. */
uint64_t mapped_low(ns3::Ipv4Address address);

#endif
