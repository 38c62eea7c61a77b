/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Mirror sessions and clones. Sessions are few, so a lookup is a linear search.
 */
#include "mirror.h"
#include "core_state.h"
#include "freestanding.h"

struct mirror_session *mirror_find(struct core *core, uint32_t session)
{
	for (int index = 0; index < CORE_MIRROR_SESSIONS; index++)
		if (core->mirrors[index].set && core->mirrors[index].session == session)
			return &core->mirrors[index];
	return NULL;
}

struct mirror_session *mirror_add(struct core *core, uint32_t session)
{
	struct mirror_session *mirror = mirror_find(core, session);

	for (int index = 0; !mirror && index < CORE_MIRROR_SESSIONS; index++)
		if (!core->mirrors[index].set)
			mirror = &core->mirrors[index];
	if (mirror) {
		mirror->set = true;
		mirror->session = session;
	}
	return mirror;
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void mirror_read_frame(const struct core *core, uint8_t *to, const struct core_packet *original,
		       uint32_t offset, uint32_t bytes)
{
	uint32_t end = min32(offset + bytes, original->head_bytes);
	uint32_t resident = end > offset ? end - offset : 0;

	memcpy(to, original->packet.frame + offset, resident);
	if (unlikely(resident < bytes))
		core->config.read_body(to + resident, original->body, offset + resident, bytes - resident);
}

/* Copies the bytes that pipeline_clone needs. Egress clone: at most truncate_bytes of the payload. Ingress clone: at
 * most truncate_bytes of the received frame, or as many as the parser may read, if that is more. */
static void copy_bytes(const struct core *core, struct core_packet *copy, const struct core_packet *original,
		       enum instance_type kind, uint32_t truncate_bytes)
{
	const struct packet *from = &original->packet;
	uint32_t skip = kind == INSTANCE_EGRESS_CLONE ? min32(from->payload_offset, from->frame_bytes) : 0;
	uint32_t bytes = min32(truncate_bytes, from->frame_bytes - skip);

	if (kind == INSTANCE_INGRESS_CLONE && bytes < pipeline_max_parse_bytes)
		bytes = min32(pipeline_max_parse_bytes, from->frame_bytes);
	mirror_read_frame(core, copy->packet.frame, original, skip, bytes);
	copy->packet.frame_bytes = bytes;
	copy->head_bytes = bytes;
	copy->queue_bytes = skip + bytes;
}

struct core_packet *mirror_clone(struct core *core, const struct core_packet *original,
				 enum instance_type kind)
{
	const struct intrinsic *std = &original->packet.std;
	const struct mirror_session *session = mirror_find(core, std->clone_session);
	struct core_packet *copy = NULL;

	if (!session || original->generation >= CORE_MAX_GENERATIONS) {
		core->stats.clone_drops++;
		return NULL;
	}
	copy = packet_pool_get(core);
	if (!copy)
		return NULL;
	copy_bytes(core, copy, original, kind, session->truncate_bytes);
	pipeline_clone(core->pipeline, &original->packet, &copy->packet, kind, std->clone_fields);
	copy->generation = original->generation + 1;
	copy->passes = original->passes;
	copy->group = session->group;
	copy->packet.std.egress_spec = session->port;
	if (unlikely(original->watched))
		watch_cloned(core, original, copy);
	core->stats.clones++;
	return copy;
}

void mirror_send(struct core *core, struct core_packet *clone, uint64_t now_ns)
{
	if (unlikely(clone->group))
		multicast_send(core, clone, clone->group, now_ns);
	if (unlikely(clone->packet.std.egress_spec == PIPELINE_DROP_PORT))
		packet_pool_put(core, clone);
	else
		traffic_enqueue(core, clone->packet.std.egress_spec, clone, now_ns);
}
