-- SPDX-License-Identifier: GPL-2.0 OR MIT
-- Wireshark dissector of bufferscope's postcards. `python -m wire.dissector` generates it from wire/postcard.def; a
-- test fails if it is stale. Use: wireshark -X lua_script:wire/postcard.lua postcards.pcapng, or copy it to Wireshark's
-- folder of personal plugins.
local bufferscope = Proto("bufferscope", "bufferscope postcard")
local f = bufferscope.fields

local policies = {[0] = 'none', [1] = 'tail_drop', [2] = 'ecn', [3] = 'egress_threshold', [4] = 'own'}
local depth_units = {[0] = 'exact', [1] = 'cells', [2] = 'unknown'}
f.version = ProtoField.uint8("bufferscope.version", "version", base.DEC, nil, nil, nil)
f.flags = ProtoField.uint8("bufferscope.flags", "flags", base.HEX, nil, nil, "POSTCARD_DROPPED to POSTCARD_BYTE_THRESHOLD")
f.switch_id = ProtoField.uint16("bufferscope.switch_id", "switch_id", base.DEC, nil, nil, "set by the control plane")
f.ingress_port = ProtoField.uint16("bufferscope.ingress_port", "ingress_port", base.DEC, nil, nil, nil)
f.egress_port = ProtoField.uint16("bufferscope.egress_port", "egress_port", base.DEC, nil, nil, "the port of the queue")
f.queue_id = ProtoField.uint8("bufferscope.queue_id", "queue_id", base.DEC, nil, nil, nil)
f.policy = ProtoField.uint8("bufferscope.policy", "policy", base.DEC, policies, nil, "the queue policy in force: POLICY_* of p4src/shared/policy.def")
f.card_seq = ProtoField.uint32("bufferscope.card_seq", "card_seq", base.DEC, nil, nil, "counts per egress_port and POSTCARD_AT_INGRESS, wraps; a gap is a loss")
f.enqueue_switch_ns = ProtoField.uint64("bufferscope.enqueue_switch_ns", "enqueue_switch_ns", base.DEC, nil, nil, "switch clock when the packet arrived at the queue, wraps after 78 hours")
f.sojourn_ns = ProtoField.uint64("bufferscope.sojourn_ns", "sojourn_ns", base.DEC, nil, nil, "from enqueue until last bit left (Tofino: dequeue); 0 if dropped on arrival")
f.depth_packets = ProtoField.uint32("bufferscope.depth_packets", "depth_packets", base.DEC, nil, nil, "queue length at arrival: with the packet on the link, without this packet")
f.depth_bytes = ProtoField.uint32("bufferscope.depth_bytes", "depth_bytes", base.DEC, nil, nil, "as depth_packets, in bytes of frames with Ethernet header, without FCS")
f.threshold = ProtoField.uint32("bufferscope.threshold", "threshold", base.DEC, nil, nil, "of the policy: packets, bytes (POSTCARD_BYTE_THRESHOLD) or cells; POLICY_OWN: its value")
f.packet_bytes = ProtoField.uint16("bufferscope.packet_bytes", "packet_bytes", base.DEC, nil, nil, "frame length, with Ethernet header, without FCS")
f.ip_protocol = ProtoField.uint8("bufferscope.ip_protocol", "ip_protocol", base.DEC, nil, nil, nil)
f.tcp_flags = ProtoField.uint8("bufferscope.tcp_flags", "tcp_flags", base.HEX, nil, nil, "CWR ECE URG ACK PSH RST SYN FIN")
f.src_addr = ProtoField.ipv6("bufferscope.src_addr", "src_addr", "IPv6, or IPv4-mapped (::ffff:a.b.c.d)")
f.dst_addr = ProtoField.ipv6("bufferscope.dst_addr", "dst_addr", nil)
f.src_port = ProtoField.uint16("bufferscope.src_port", "src_port", base.DEC, nil, nil, nil)
f.dst_port = ProtoField.uint16("bufferscope.dst_port", "dst_port", base.DEC, nil, nil, nil)
f.tcp_seq = ProtoField.uint32("bufferscope.tcp_seq", "tcp_seq", base.DEC, nil, nil, nil)
f.tcp_ack = ProtoField.uint32("bufferscope.tcp_ack", "tcp_ack", base.DEC, nil, nil, nil)
f.depth_cells = ProtoField.uint32("bufferscope.depth_cells", "depth_cells", base.DEC, nil, nil, "as depth_packets, in buffer cells, whose size the switch reports")
f.depth_unit = ProtoField.uint8("bufferscope.depth_unit", "depth_unit", base.DEC, depth_units, nil, "POSTCARD_DEPTH_*: which of the depths are valid; the others are 0")
f.flag_dropped = ProtoField.bool("bufferscope.flags.dropped", "DROPPED", 8, nil, 0x01)
f.flag_ce_marked = ProtoField.bool("bufferscope.flags.ce_marked", "CE_MARKED", 8, nil, 0x02)
f.flag_ect = ProtoField.bool("bufferscope.flags.ect", "ECT", 8, nil, 0x04)
f.flag_at_ingress = ProtoField.bool("bufferscope.flags.at_ingress", "AT_INGRESS", 8, nil, 0x08)
f.flag_has_ports = ProtoField.bool("bufferscope.flags.has_ports", "HAS_PORTS", 8, nil, 0x10)
f.flag_has_tcp = ProtoField.bool("bufferscope.flags.has_tcp", "HAS_TCP", 8, nil, 0x20)
f.flag_has_ip = ProtoField.bool("bufferscope.flags.has_ip", "HAS_IP", 8, nil, 0x40)
f.flag_byte_threshold = ProtoField.bool("bufferscope.flags.byte_threshold", "BYTE_THRESHOLD", 8, nil, 0x80)

function bufferscope.dissector(buffer, packet, tree)
	if buffer:len() < 91 or buffer(0, 1):uint() ~= 2 then return 0 end
	packet.cols.protocol = "bufferscope"
	local card = tree:add(bufferscope, buffer(0, 91))
	card:add(f.version, buffer(0, 1))
	local flags = card:add(f.flags, buffer(1, 1))
	flags:add(f.flag_dropped, buffer(1, 1))
	flags:add(f.flag_ce_marked, buffer(1, 1))
	flags:add(f.flag_ect, buffer(1, 1))
	flags:add(f.flag_at_ingress, buffer(1, 1))
	flags:add(f.flag_has_ports, buffer(1, 1))
	flags:add(f.flag_has_tcp, buffer(1, 1))
	flags:add(f.flag_has_ip, buffer(1, 1))
	flags:add(f.flag_byte_threshold, buffer(1, 1))
	card:add(f.switch_id, buffer(2, 2))
	card:add(f.ingress_port, buffer(4, 2))
	card:add(f.egress_port, buffer(6, 2))
	card:add(f.queue_id, buffer(8, 1))
	card:add(f.policy, buffer(9, 1))
	card:add(f.card_seq, buffer(10, 4))
	card:add(f.enqueue_switch_ns, buffer(14, 6))
	card:add(f.sojourn_ns, buffer(20, 6))
	card:add(f.depth_packets, buffer(26, 4))
	card:add(f.depth_bytes, buffer(30, 4))
	card:add(f.threshold, buffer(34, 4))
	card:add(f.packet_bytes, buffer(38, 2))
	card:add(f.ip_protocol, buffer(40, 1))
	card:add(f.tcp_flags, buffer(41, 1))
	card:add(f.src_addr, buffer(42, 16))
	card:add(f.dst_addr, buffer(58, 16))
	card:add(f.src_port, buffer(74, 2))
	card:add(f.dst_port, buffer(76, 2))
	card:add(f.tcp_seq, buffer(78, 4))
	card:add(f.tcp_ack, buffer(82, 4))
	card:add(f.depth_cells, buffer(86, 4))
	card:add(f.depth_unit, buffer(90, 1))
	local fate = buffer(1, 1):bitfield(7, 1) == 1 and 'dropped' or 'departed'
	local depth = string.format('%d packets', buffer(26, 4):uint())
	local unit = buffer(90, 1):uint()
	if unit == 1 then depth = string.format('%d cells', buffer(86, 4):uint()) end
	if unit == 2 then depth = 'unknown' end
	packet.cols.info = string.format('%s, depth %s', fate, depth)
	return 91
end

DissectorTable.get("udp.port"):add(5577, bufferscope)
