/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * See multicast.h. Groups are few, so a lookup is a linear search.
 */
#include "multicast.h"
#include "control.h"
#include "core_state.h"
#include "freestanding.h"
#include "request.h"

static struct multicast_group *find(struct core *core, uint16_t number)
{
	for (int index = 0; index < CORE_MULTICAST_GROUPS; index++)
		if (core->groups[index].number == number)
			return &core->groups[index];
	return NULL;
}

static struct core_packet *copy_packet(struct core *core, const struct core_packet *original)
{
	struct core_packet *copy = packet_pool_get(core);

	if (!copy)
		return NULL;
	mirror_read_frame(core, copy->packet.frame, original, 0, original->packet.frame_bytes);
	memcpy(copy->packet.phv, original->packet.phv, pipeline_phv_bytes);
	copy->packet.frame_bytes = original->packet.frame_bytes;
	copy->packet.payload_offset = original->packet.payload_offset;
	copy->packet.std = original->packet.std;
	copy->head_bytes = original->packet.frame_bytes;
	copy->queue_bytes = original->queue_bytes;
	copy->flow_delay_ns = original->flow_delay_ns;
	copy->generation = original->generation;
	copy->passes = original->passes;
	return copy;
}

void multicast_send(struct core *core, struct core_packet *original, uint16_t number, uint64_t now_ns)
{
	const struct multicast_group *group = number ? find(core, number) : NULL;

	if (!group || !group->count) {
		core->stats.multicast_drops++;
		return;
	}
	for (uint32_t index = 0; index < group->count; index++) {
		struct core_packet *copy;

		original->packet.std.egress_rid = group->copies[index].replica;
		copy = copy_packet(core, original);
		if (!copy)
			continue;
		core->stats.multicast_copies++;
		if (unlikely(original->watched))
			watch_copied(core, original, copy, group->copies[index].port);
		traffic_enqueue(core, group->copies[index].port, copy, now_ns);
	}
}

static size_t group_set(struct core *core, uint16_t number, struct words *words, struct text *text)
{
	struct multicast_group wanted = {.number = number}, *group = find(core, number);
	uint64_t port, replica;

	while (*words->at) {
		struct multicast_copy *copy = &wanted.copies[wanted.count];

		if (wanted.count == CORE_GROUP_COPIES)
			return request_refuse(text, "too many ports in a multicast group: at most 64");
		if (!control_read_port(core, words, &port))
			return request_refuse_word(text, "no such port", words,
						   "one that the switch was started with");
		if (!words_next(words) || !words_number(words, &replica) || replica > 65535)
			return request_refuse_word(text, "replica id", words, "0 to 65535, after each port");
		*copy = (struct multicast_copy){(uint16_t)port, (uint16_t)replica};
		wanted.count++;
	}
	if (!group)
		group = find(core, 0);
	if (!group)
		return request_refuse(text, "too many multicast groups: delete one");
	*group = wanted;
	return request_accept(text);
}

size_t multicast_control(struct core *core, struct words *words, struct text *text)
{
	bool set = words_next(words) && words_is(words, "set");
	bool show = words_is(words, "show");
	struct multicast_group *group;
	uint64_t number;

	if (!set && !show && !words_is(words, "delete"))
		return request_refuse_word(
			text, "unknown request multicast", words,
			"multicast set GROUP PORT RID [PORT RID]..., multicast show GROUP, "
			"multicast delete GROUP");
	if (!words_next(words) || !words_number(words, &number) || !number || number > CORE_MAX_GROUP)
		return request_refuse_word(text, "multicast group", words, "1 to 65535");
	if (set)
		return group_set(core, (uint16_t)number, words, text);
	group = find(core, (uint16_t)number);
	if (!group || words_next(words))
		return request_refuse_word(text, "no such multicast group, or words after it", words,
					   "multicast show GROUP, multicast delete GROUP");
	if (!show) {
		group->number = 0;
		return request_accept(text);
	}
	text_put(text, "ok\n");
	for (uint32_t index = 0; index < group->count; index++) {
		text_put(text, "port ");
		text_put_number(text, group->copies[index].port);
		text_put_pair(text, " replica", group->copies[index].replica);
	}
	return text_end(text);
}
