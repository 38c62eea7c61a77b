/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Dispatches a request by its first word, and answers requests for registers, counters, meters, CRCs and random numbers.
 */
#include "p4_control.h"
#include "p4_request.h"

/* The index of the description that the next word names. -1, with an error reply: it names none, or more than one. */
static int read_name(struct p4_request *request, const char *kind, const void *first, size_t stride,
		     uint32_t count)
{
	int number;

	p4_next_word(request);
	number = p4_name_index(&request->words, first, stride, count);
	if (number >= 0)
		return number;
	text_format(p4_error(request), "%s '%.*s' is unknown or ambiguous: the program has ", kind,
		    WORD_OF(&request->words));
	p4_put_names(&request->reply, first, stride, count);
	text_put(&request->reply, "\n");
	return number;
}

/* The next word as an index below `size`. */
static bool read_index(struct p4_request *request, const char *name, uint32_t size, uint32_t *index)
{
	uint128_t value;

	if (!p4_next_word(request)) {
		text_format(p4_error(request), "%s: an index is missing\n", name);
		return false;
	}
	if (!p4_number_word(request, "index", 64, &value))
		return false;
	if (value >= size) {
		text_format(p4_error(request), "%s: index '%.*s' is out of range: the size is %u\n", name,
			    WORD_OF(&request->words), size);
		return false;
	}
	*index = (uint32_t)value;
	return true;
}

/* The same, or `all`. */
static bool read_index_or_all(struct p4_request *request, const char *name, uint32_t size, uint32_t *index,
			      bool *all)
{
	struct words ahead = request->words;

	*all = words_next(&ahead) && words_is(&ahead, "all");
	if (!*all)
		return read_index(request, name, size, index);
	return p4_next_word(request);
}

/* The largest element that a request can write; wider ones can be read. */
#define WRITABLE_BITS 128u

static unsigned min_unsigned(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* An element is in memory with its least significant byte first. */
static void put_element(struct text *text, const uint8_t *at, const struct p4_register_info *info)
{
	unsigned nibble = (info->bits + 3) / 4;
	uint128_t value = 0;

	if (info->bits <= WRITABLE_BITS) {
		__builtin_memcpy(&value, at, info->element_bytes);
		p4_put_value(text, value, info->bits > 64 ? info->bits : 32);
		return;
	}
	while (nibble > 1 && !(at[(nibble - 1) / 2] >> (nibble - 1) % 2 * 4 & 15))
		nibble--;
	text_put(text, "0x");
	while (nibble--)
		text_format(text, "%.*s", 1, &"0123456789abcdef"[at[nibble / 2] >> nibble % 2 * 4 & 15]);
}

static void control_register(struct p4_request *request)
{
	const struct p4_program_info *program = request->program;
	const struct p4_register_info *info;
	uint128_t value = 1;
	uint32_t index;
	uint8_t *element;
	bool write;
	int number;

	if (!p4_next_word(request) ||
	    !(words_is(&request->words, "read") || words_is(&request->words, "write"))) {
		text_put(p4_error(request), "register: read NAME INDEX [COUNT], or write NAME INDEX VALUE\n");
		return;
	}
	write = words_is(&request->words, "write");
	number = read_name(request, "register", program->registers, sizeof(*info), program->register_count);
	if (number < 0)
		return;
	info = &program->registers[number];
	if (write && info->read_only) {
		text_format(p4_error(request),
			    "%s: the switch fills it with the lengths of its queues: it can only be read\n",
			    info->name);
		return;
	}
	if (!read_index(request, info->name, info->size, &index))
		return;
	element = request->pipeline + info->offset + (size_t)index * info->element_bytes;
	if (p4_next_word(request)) {
		if (!p4_number_word(request, write ? info->name : "count",
				    write ? min_unsigned(info->bits, WRITABLE_BITS) : 32, &value))
			return;
	} else if (write) {
		text_format(p4_error(request), "%s: a value is missing\n", info->name);
		return;
	}
	if (!p4_at_end(request))
		return;
	text_put(&request->reply, "ok\n");
	if (write) {
		__builtin_memset(element, 0, info->element_bytes);
		__builtin_memcpy(element, &value, min_unsigned(info->element_bytes, sizeof(value)));
		return;
	}
	for (; value && index < info->size; value--, index++, element += info->element_bytes) {
		text_format(&request->reply, "%u ", index);
		put_element(&request->reply, element, info);
		text_put(&request->reply, "\n");
	}
}

/* The packet count of element `index`, followed by its byte count. A direct counter has both in row `index` of its
 * table.
 */
static uint64_t *counter_at(struct p4_request *request, const struct p4_counter_info *info, uint32_t index)
{
	const struct p4_table_info *table;

	if (!info->table)
		return &((struct p4_counter *)(request->pipeline + info->offset))[index].packets;
	table = request->program->tables[info->table - 1];
	return &p4_row(p4_table_of(request, table), index, table->row_bytes)->packets;
}

static void control_counter(struct p4_request *request)
{
	const struct p4_program_info *program = request->program;
	const struct p4_counter_info *info;
	uint32_t index = 0, size;
	bool reset, all;
	int number;

	if (!p4_next_word(request) ||
	    !(words_is(&request->words, "read") || words_is(&request->words, "reset"))) {
		text_put(p4_error(request), "counter: read NAME [INDEX], or reset NAME\n");
		return;
	}
	reset = words_is(&request->words, "reset");
	number = read_name(request, "counter", program->counters, sizeof(*info), program->counter_count);
	if (number < 0)
		return;
	info = &program->counters[number];
	size = info->table ? p4_table_of(request, program->tables[info->table - 1])->used : info->size;
	all = reset || !*request->words.at;
	if (!all && !read_index(request, info->name, size, &index))
		return;
	if (!p4_at_end(request))
		return;
	text_put(&request->reply, "ok\n");
	if (!all)
		size = index + 1;
	for (; index < size; index++) {
		uint64_t *packets = counter_at(request, info, index), *bytes = packets + 1;

		if (reset)
			*packets = *bytes = 0;
		else if (!all || *packets || *bytes)
			text_format(&request->reply, "%u %llu %llu\n", index, (unsigned long long)*packets,
				    (unsigned long long)*bytes);
	}
}

static struct p4_meter *meter_at(struct p4_request *request, const struct p4_meter_info *info, uint32_t index)
{
	const struct p4_table_info *table;

	if (!info->table)
		return &((struct p4_meter *)(request->pipeline + info->offset))[index];
	table = request->program->tables[info->table - 1];
	return (struct p4_meter *)((uint8_t *)p4_row(p4_table_of(request, table), index, table->row_bytes) +
				   info->offset);
}

/* Reads "RATE BURST RATE BURST", committed first. The buckets start full, as in simple_switch. */
static bool read_meter(struct p4_request *request, struct p4_meter *meter)
{
	uint128_t value;

	*meter = (struct p4_meter){.configured = true};
	for (int rate = P4_METER_RATES; rate--;) {
		struct p4_meter_bucket *bucket = &meter->buckets[rate];

		p4_next_word(request);
		if (!p4_number_word(request, "rate", 64, &value))
			return false;
		bucket->per_second = (uint64_t)value;
		p4_next_word(request);
		if (!p4_number_word(request, "burst", 62, &value))
			return false;
		bucket->burst = bucket->tokens = (uint64_t)value;
	}
	if (!p4_at_end(request))
		return false;
	if (meter->buckets[P4_METER_COMMITTED].per_second <= meter->buckets[P4_METER_PEAK].per_second &&
	    meter->buckets[P4_METER_PEAK].per_second <= P4_METER_MAX_RATE)
		return true;
	text_put(p4_error(request),
		 "meter: a rate is at most 10000000000 a second, and the committed rate at most "
		 "the peak rate\n");
	return false;
}

static void control_meter(struct p4_request *request)
{
	const struct p4_program_info *program = request->program;
	const struct p4_meter_info *info;
	struct p4_meter meter = {.configured = false};
	uint32_t index = 0, size;
	bool set, all;
	int number;

	if (!p4_next_word(request) ||
	    !(words_is(&request->words, "set") || words_is(&request->words, "clear"))) {
		text_put(p4_error(request),
			 "meter: set NAME INDEX|all RATE BURST PEAK_RATE PEAK_BURST, or clear "
			 "NAME INDEX|all\n");
		return;
	}
	set = words_is(&request->words, "set");
	number = read_name(request, "meter", program->meters, sizeof(*info), program->meter_count);
	if (number < 0)
		return;
	info = &program->meters[number];
	size = info->table ? p4_table_of(request, program->tables[info->table - 1])->used : info->size;
	if (!read_index_or_all(request, info->name, size, &index, &all))
		return;
	if (set ? !read_meter(request, &meter) : !p4_at_end(request))
		return;
	for (size = all ? size : index + 1; index < size; index++)
		*meter_at(request, info, index) = meter;
	text_put(&request->reply, "ok\n");
}

static void control_crc(struct p4_request *request)
{
	const struct p4_program_info *program = request->program;
	static const char *const names[] = {"polynomial", "initial", "final", "reflect_data",
					    "reflect_remainder"};
	uint128_t values[sizeof(names) / sizeof(names[0])];
	const struct p4_crc_info *info;
	int number;

	if (!p4_next_word(request) || !words_is(&request->words, "set")) {
		text_put(p4_error(request), "crc: set NAME POLYNOMIAL INITIAL FINAL REFLECT_DATA "
					    "REFLECT_REMAINDER, the last two 0 or 1\n");
		return;
	}
	number = read_name(request, "crc", program->crcs, sizeof(*info), program->crc_count);
	if (number < 0)
		return;
	info = &program->crcs[number];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		p4_next_word(request);
		if (!p4_number_word(request, names[i], i < 3 ? info->bits : 1, &values[i]))
			return;
	}
	if (!p4_at_end(request))
		return;
	*(struct p4_crc *)(request->pipeline + info->offset) = (struct p4_crc){
		.polynomial = (uint32_t)values[0],
		.initial = (uint32_t)values[1],
		.final = (uint32_t)values[2],
		.reflect_data = values[3],
		.reflect_remainder = values[4],
	};
	text_put(&request->reply, "ok\n");
}

static void control_random(struct p4_request *request)
{
	uint128_t seed;

	if (!p4_next_word(request) || !words_is(&request->words, "seed") || !p4_next_word(request)) {
		text_put(p4_error(request), "random: seed NUMBER\n");
		return;
	}
	if (!p4_number_word(request, "seed", 64, &seed) || !p4_at_end(request))
		return;
	*(uint64_t *)(request->pipeline + request->program->random_offset) = (uint64_t)seed;
	text_put(&request->reply, "ok\n");
}

size_t p4_control(const struct p4_program_info *program, void *pipeline, const char *text, char *reply,
		  size_t reply_bytes)
{
	struct p4_request request = {.program = program, .pipeline = pipeline, .words = {.at = text}};

	text_start(&request.reply, reply, reply_bytes);
	p4_next_word(&request);
	if (words_is(&request.words, "table")) {
		p4_control_table(&request);
	} else if (words_is(&request.words, "register")) {
		control_register(&request);
	} else if (words_is(&request.words, "counter")) {
		control_counter(&request);
	} else if (words_is(&request.words, "meter")) {
		control_meter(&request);
	} else if (words_is(&request.words, "crc")) {
		control_crc(&request);
	} else if (words_is(&request.words, "random")) {
		control_random(&request);
	} else {
		text_format(p4_error(&request),
			    "unknown request '%.*s': docs/control-protocol.md lists all requests\n",
			    WORD_OF(&request.words));
	}
	return text_end(&request.reply);
}
