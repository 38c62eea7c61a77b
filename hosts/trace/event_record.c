// SPDX-License-Identifier: MIT
// A table maps the fields of a stock event (include/trace/events/tcp.h) to record fields with the same value. Addresses
// and ssthresh are converted. Stock events have more fields in newer kernels. Record fields for which the running
// kernel's event has no field are marked unknown.
#include "event_record.h"

#include <stddef.h>
#include <string.h>

#include "address.h"
#include "ring_page.h"

#define KNOWN(field)	  (UINT64_C(1) << TCP_FIELD_##field)
#define FIELD(bits, name) _Static_assert(TCP_FIELD_##name < 64, #name " has no bit in unknown_fields");
#include "../../wire/tcp_record.def"

static const uint64_t ALL_FIELDS = UINT64_MAX >> (64 - TCP_FIELDS);

static const struct {
	const char *stock;
	uint32_t number, at, bytes;
} SAME[] = {
#define SAME_AS(stock, field)                                                                                \
	{stock, TCP_FIELD_##field, offsetof(struct tcp_record, field),                                       \
	 sizeof(((struct tcp_record *)0)->field)}
	SAME_AS("sock_cookie", socket_cookie),
	SAME_AS("snd_nxt", snd_nxt),
	SAME_AS("snd_una", snd_una),
	SAME_AS("snd_cwnd", cwnd_packets),
	SAME_AS("snd_wnd", snd_wnd_bytes),
	SAME_AS("rcv_wnd", rcv_wnd_bytes),
	SAME_AS("srtt", srtt_us),
	SAME_AS("data_len", data_bytes),
	SAME_AS("sport", src_port),
	SAME_AS("dport", dst_port),
};

_Static_assert(sizeof(SAME) / sizeof(SAME[0]) <= STOCK_MAX_COPIES,
	       "more copies than an event_kind has room for");

const char *tcp_field_name(uint32_t number)
{
	static const char *const NAMES[] = {
#define FIELD(bits, name) #name,
#include "../../wire/tcp_record.def"
	};

	return number < TCP_FIELDS ? NAMES[number] : "";
}

/* Finds a field, and raises the event's minimum length to include the field. Returns NULL, or the missing field's name.
 */
static const char *need(struct event_kind *kind, const struct event_format *format, const char *name,
			uint32_t bytes, struct event_field *place)
{
	const struct event_field *field = event_format_find(format, name, bytes);
	uint32_t end;

	if (!field)
		return name;
	*place = *field;
	end = field->at + field->bytes;
	kind->bytes = end > kind->bytes ? end : kind->bytes;
	return NULL;
}

const char *event_kind_custom(struct event_kind *kind, const struct event_format *format, uint8_t event)
{
	const char *missing;

	*kind = (struct event_kind){.id = format->id, .event = event, .custom = true, .has_failed = true};
	missing = need(kind, format, "failed", 1, &kind->failed);
	if (!missing)
		missing = need(kind, format, "record_version", 1, &kind->version);
	if (!missing)
		missing = need(kind, format, "record", TCP_RECORD_BYTES, &kind->record);
	return missing;
}

static bool is_integer(const struct event_field *field)
{
	return field->bytes == 1 || field->bytes == 2 || field->bytes == 4 || field->bytes == 8;
}

static const char *need_addresses(struct event_kind *kind, const struct event_format *format)
{
	uint32_t bytes = sizeof(struct sockaddr_in6);
	const char *missing;

	kind->wide_addresses = event_format_find(format, "saddr_v6", 0);
	if (kind->wide_addresses) {
		bytes = sizeof(struct in6_addr);
		missing = need(kind, format, "saddr_v6", bytes, &kind->src_addr);
		return missing ? missing : need(kind, format, "daddr_v6", bytes, &kind->dst_addr);
	}
	missing = need(kind, format, "saddr", bytes, &kind->src_addr);
	return missing ? missing : need(kind, format, "daddr", bytes, &kind->dst_addr);
}

const char *event_kind_stock(struct event_kind *kind, const struct event_format *format, uint8_t event)
{
	uint64_t known = KNOWN(mono_ns) | KNOWN(event) | KNOWN(cpu) | KNOWN(unknown_fields) |
			 KNOWN(src_addr_hi) | KNOWN(src_addr_lo) | KNOWN(dst_addr_hi) | KNOWN(dst_addr_lo);
	struct event_field field;

	*kind = (struct event_kind){.id = format->id, .event = event};
	for (uint32_t i = 0; i < sizeof(SAME) / sizeof(SAME[0]); i++) {
		if (need(kind, format, SAME[i].stock, 0, &field) || !is_integer(&field))
			continue;
		kind->copy[kind->copies].from = field;
		kind->copy[kind->copies].to = SAME[i].at;
		kind->copy[kind->copies].to_bytes = SAME[i].bytes;
		kind->copies++;
		known |= UINT64_C(1) << SAME[i].number;
	}
	if (~known & KNOWN(src_port))
		return "sport";
	if (~known & KNOWN(dst_port))
		return "dport";
	kind->has_failed = !need(kind, format, "err", 4, &kind->failed);
	if (known & KNOWN(cwnd_packets) && !need(kind, format, "ssthresh", 4, &kind->ssthresh)) {
		kind->infers_ssthresh = true;
		known |= KNOWN(ssthresh_packets);
	}
	kind->unknown_fields = ALL_FIELDS & ~known;
	return need_addresses(kind, format);
}

static uint64_t field_value(const struct event_field *field, const uint8_t *data)
{
	return ring_integer(data + field->at, field->bytes);
}

/* The stock event has tcp_current_ssthresh: snd_ssthresh while cwnd is being reduced, else the larger of snd_ssthresh
 * and 3/4 of cwnd. A value other than 3/4 of cwnd is therefore snd_ssthresh.
 */
static void infer_ssthresh(struct tcp_record *record, uint32_t current)
{
	if (current == (record->cwnd_packets >> 1) + (record->cwnd_packets >> 2))
		record->unknown_fields |= KNOWN(ssthresh_packets);
	else
		record->ssthresh_packets = current;
}

static bool take_address(const struct event_kind *kind, const uint8_t *at, uint64_t *hi, uint64_t *lo)
{
	if (!kind->wide_addresses) {
		*hi = 0;
		return address_read(at, 0xffff, hi, lo);
	}
	*hi = address_half(at);
	*lo = address_half(at + 8);
	return true;
}

static enum event_outcome decode_stock(const struct event_kind *kind, const uint8_t *data,
				       struct tcp_record *record)
{
	*record = (struct tcp_record){.event = kind->event, .unknown_fields = kind->unknown_fields};
	for (uint32_t i = 0; i < kind->copies; i++) {
		uint64_t value = field_value(&kind->copy[i].from, data);

		memcpy((uint8_t *)record + kind->copy[i].to, &value, kind->copy[i].to_bytes);
	}
	if (kind->infers_ssthresh)
		infer_ssthresh(record, (uint32_t)field_value(&kind->ssthresh, data));
	return take_address(kind, data + kind->src_addr.at, &record->src_addr_hi, &record->src_addr_lo) &&
			       take_address(kind, data + kind->dst_addr.at, &record->dst_addr_hi,
					    &record->dst_addr_lo)
		       ? EVENT_RECORD
		       : EVENT_DAMAGED;
}

static enum event_outcome decode_custom(const struct event_kind *kind, const uint8_t *data,
					struct tcp_record *record)
{
	memcpy(record, data + kind->record.at, sizeof(*record));
	return field_value(&kind->version, data) == TCP_RECORD_VERSION && record->event == kind->event
		       ? EVENT_RECORD
		       : EVENT_DAMAGED;
}

enum event_outcome event_decode(const struct event_decoder *decoder, uint64_t ns, uint32_t cpu,
				const uint8_t *data, uint32_t bytes, struct tcp_record *record)
{
	const struct event_kind *kind = NULL;
	enum event_outcome outcome;
	uint64_t id;

	if (bytes < decoder->type.at + decoder->type.bytes)
		return EVENT_DAMAGED;
	id = field_value(&decoder->type, data);
	for (uint32_t i = 0; i < sizeof(decoder->kind) / sizeof(decoder->kind[0]); i++)
		if (decoder->kind[i].id == id)
			kind = &decoder->kind[i];
	if (!kind)
		return EVENT_OTHER;
	if (bytes < kind->bytes)
		return EVENT_DAMAGED;
	outcome = kind->custom ? decode_custom(kind, data, record) : decode_stock(kind, data, record);
	record->mono_ns = ns;
	record->cpu = cpu;
	if (outcome == EVENT_RECORD && kind->has_failed && field_value(&kind->failed, data))
		outcome = EVENT_FAILED;
	return outcome;
}
