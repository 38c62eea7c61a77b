/* SPDX-License-Identifier: MIT
 * Converts a trace event to a TCP record. A custom event (kernel_event/) carries a whole record. A stock event fills
 * some fields; the other fields are marked unknown.
 */
#ifndef TRACE_EVENT_RECORD_H
#define TRACE_EVENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "../../wire/tcp_record.h"
#include "event_format.h"

enum { STOCK_MAX_COPIES = 16 };

/* One kind of event: where its values are, and which fields of a record the event cannot fill. */
struct event_kind {
	uint32_t id;
	uint8_t event; /* TCP_EVENT_* */
	bool custom;
	bool has_failed;
	bool wide_addresses;				 /* 16 bytes of IPv6 each, else a struct sockaddr */
	bool infers_ssthresh;				 /* see event_record.c */
	uint32_t bytes;					 /* minimum length of an event of this kind */
	struct event_field failed;			 /* not 0: the segment could not be sent */
	struct event_field version, record;		 /* custom events only */
	struct event_field src_addr, dst_addr, ssthresh; /* stock events only */
	uint32_t copies;
	struct {
		struct event_field from;
		uint32_t to, to_bytes; /* in the record */
	} copy[STOCK_MAX_COPIES];
	uint64_t unknown_fields;
};

struct event_decoder {
	struct event_field type;
	struct event_kind kind[2];
};

enum event_outcome {
	EVENT_RECORD,
	EVENT_FAILED, /* the kernel could not retransmit the segment; the record has the socket's fields */
	EVENT_OTHER,  /* none of the decoder's kinds */
	EVENT_DAMAGED,
};

/* Locates the values of an event. Returns NULL, or the name of a needed field that is missing or of another size. */
const char *event_kind_custom(struct event_kind *kind, const struct event_format *format, uint8_t event);
const char *event_kind_stock(struct event_kind *kind, const struct event_format *format, uint8_t event);

enum event_outcome event_decode(const struct event_decoder *decoder, uint64_t ns, uint32_t cpu,
				const uint8_t *data, uint32_t bytes, struct tcp_record *record);

/* A field's name by its number in wire/tcp_record.def. */
const char *tcp_field_name(uint32_t number);

#endif
