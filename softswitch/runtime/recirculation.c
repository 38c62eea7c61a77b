/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See recirculation.h.
 */
#include "recirculation.h"
#include "core_state.h"
#include "freestanding.h"
#include "request.h"

bool recirculation_passes_again(struct core *core, struct core_packet *packet)
{
	if (packet->passes >= CORE_MAX_PASSES) {
		core->recirculation.drops++;
		packet_pool_put(core, packet);
		return false;
	}
	packet->passes++;
	core->recirculation.packets++;
	return true;
}

/* Moves the whole frame to where received frames begin, so that headers can grow again. */
static void gather_frame(const struct core *core, struct core_packet *packet)
{
	uint32_t bytes = packet->packet.frame_bytes;
	uint32_t resident = packet->body ? packet_resident_bytes(packet) : bytes;

	memmove(packet->buffer, packet->packet.frame, resident);
	if (packet->body) {
		if (bytes > resident)
			core->config.read_body(packet->buffer + resident, packet->body, packet->head_bytes,
					       bytes - resident);
		core->config.drop_body(packet->body);
		packet->body = NULL;
	}
	packet->packet.frame = packet->buffer;
	packet->head_bytes = bytes;
	packet->queue_bytes = bytes;
}

void recirculation_send(struct core *core, struct core_packet *packet, uint64_t now_ns)
{
	struct recirculation *way = &core->recirculation;

	if (unlikely(packet->packet.frame_bytes > core->config.frame_bytes || !packet->packet.frame_bytes)) {
		way->drops++;
		packet_pool_put(core, packet);
		return;
	}
	if (!recirculation_passes_again(core, packet))
		return;
	gather_frame(core, packet);
	link_serve(&way->link, way->rate_bps, now_ns, link_wire_bits(packet->queue_bytes), &way->link);
	packet->time_ns = way->link.free_ns + way->delay_ns;
	packet->seq = core->next_seq++;
	heap_push_lane(&core->arrivals, &core->ports[packet->port].arrivals, packet);
}

size_t recirculation_control(struct core *core, struct words *words, struct text *text)
{
	struct recirculation *way = &core->recirculation;
	struct setting settings[] = {
		{"rate", REQUEST_MIN_RATE_BPS, REQUEST_MAX_RATE_BPS, way->rate_bps},
		{"delay", 0, REQUEST_MAX_DELAY_NS, way->delay_ns},
	};
	size_t error;

	if (words_next(words) && words_is(words, "show") && !words_next(words)) {
		text_put(text, "ok\n");
		text_put_pair(text, "rate", way->rate_bps);
		text_put_pair(text, "delay", way->delay_ns);
		return text_end(text);
	}
	if (!words_is(words, "set"))
		return request_refuse_word(text, "unknown request recirculation", words,
					   "recirculation set [rate BPS] [delay NS], recirculation show");
	error = request_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]), NULL);
	if (error)
		return error;
	if (way->rate_bps != settings[0].value)
		way->link.carry = 0;
	way->rate_bps = settings[0].value;
	way->delay_ns = settings[1].value;
	return request_accept(text);
}
