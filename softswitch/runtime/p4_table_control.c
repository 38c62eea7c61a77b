/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests that concern tables: list, set, delete, default, dump. The refusal of a value says which values the table
 * allows (p4_table_info).
 */
#include "p4_request.h"

/* The translator refuses larger rows. The functions that read an entry keep it in their stack frame, and a kernel's stack
 * frames have at most 2 KiB.
 */
enum { MAX_ROW_WORDS = 192 };

/* The entry that a request describes. */
struct entry {
	uint64_t words[MAX_ROW_WORDS];
	uint32_t action;
	uint32_t length; /* of the prefix, in lpm tables */
	uint32_t priority;
};

static const char *const match_names[] = {"exact", "lpm", "ternary", "range"};

static void put_value_at(uint64_t *words, unsigned bits, uint128_t value)
{
	if (bits > 64)
		*words++ = (uint64_t)(value >> 64);
	*words = (uint64_t)value;
}

static uint128_t value_at(const uint64_t *words, unsigned bits)
{
	return bits > 64 ? P4_WIDE(words[0], words[1]) : words[0];
}

static const struct p4_table_info *read_table(struct p4_request *request)
{
	const struct p4_program_info *program = request->program;
	const struct p4_table_info *match = NULL;

	p4_next_word(request);
	/* The program has pointers to tables, not an array of them: p4_name_index compares one name at a time. */
	for (uint32_t i = 0, ends = 0; i < program->table_count; i++) {
		const struct p4_table_info *info = program->tables[i];

		if (p4_name_index(&request->words, info, sizeof(*info), 1) < 0)
			continue;
		if (words_is(&request->words, info->name))
			return info;
		match = ++ends == 1 ? info : NULL;
	}
	if (match)
		return match;
	text_format(p4_error(request), "table '%.*s' is unknown or ambiguous: the program has ",
		    WORD_OF(&request->words));
	for (uint32_t i = 0; i < program->table_count; i++)
		text_format(&request->reply, "%s%s", i ? ", " : "", program->tables[i]->name);
	text_put(&request->reply, program->table_count ? "\n" : "none\n");
	return NULL;
}

static struct text *table_error(struct p4_request *request, const struct p4_table_info *table)
{
	text_format(p4_error(request), "table %s: ", table->name);
	return &request->reply;
}

static struct text *key_error(struct p4_request *request, const struct p4_table_info *table,
			      const struct p4_key_info *key)
{
	text_format(table_error(request, table), "key %s: '%.*s'", key->name, WORD_OF(&request->words));
	return &request->reply;
}

/* The index of `mark` in the current word; without `mark`, the length of the word. */
static size_t find_mark(const struct words *words, const char *mark)
{
	for (size_t at = 0; at < words->word_bytes; at++) {
		size_t i = 0;

		while (mark[i] && at + i < words->word_bytes && words->word[at + i] == mark[i])
			i++;
		if (!mark[i])
			return at;
	}
	return words->word_bytes;
}

/* Reads one field of the key from the current word. The match kind gives the form of the field. */
static bool read_key(struct p4_request *request, const struct p4_table_info *table,
		     const struct p4_key_info *key, struct entry *entry)
{
	static const char *const marks[] = {"", "/", "&&&", ".."};
	static const uint8_t mark_bytes[] = {0, 1, 3, 2};
	static const char *const forms[] = {"", "VALUE/BITS with BITS up to ",
					    "VALUE&&&MASK, VALUE, or * for any",
					    "FIRST..LAST, VALUE, or * for any"};
	const struct words *words = &request->words;
	uint128_t all = ~(uint128_t)0 >> (128 - key->bits), value, second = all;
	size_t mark = key->match == P4_EXACT ? words->word_bytes : find_mark(words, marks[key->match]);
	bool with_mark = mark < words->word_bytes;
	bool any = (key->match == P4_TERNARY || key->match == P4_RANGE) && words_is(words, "*");
	enum number result = NUMBER_OK;
	struct text *reply;

	if (any)
		value = 0;
	else
		result = text_read_number(words->word, mark, key->bits, &value);
	if (result != NUMBER_OK) {
		p4_put_number_error(key_error(request, table, key), result, key->bits);
		return false;
	}
	if (with_mark) {
		size_t from = mark + mark_bytes[key->match];

		result = text_read_number(words->word + from, words->word_bytes - from,
					  key->match == P4_LPM ? 32 : key->bits, &second);
		if (result != NUMBER_OK || (key->match == P4_LPM && second > key->bits)) {
			reply = key_error(request, table, key);
			text_format(reply, " should be %s", forms[key->match]);
			if (key->match == P4_LPM)
				text_put_number(reply, key->bits);
			text_put(reply, "\n");
			return false;
		}
	}

	switch (key->match) {
	case P4_RANGE:
		if (any || with_mark) {
			if (value <= second)
				break;
			text_put(key_error(request, table, key), " ends before it starts\n");
			return false;
		}
		second = value;
		break;
	case P4_TERNARY:
		if (any)
			second = 0;
		break;
	case P4_LPM:
		entry->length = with_mark ? (uint32_t)second : key->bits;
		second = p4_prefix128(key->bits, entry->length);
		break;
	}
	if ((key->match == P4_LPM || key->match == P4_TERNARY) && value & ~second) {
		reply = key_error(request, table, key);
		text_put(reply, " has bits outside its mask: did you mean ");
		p4_put_hex(reply, value & second);
		text_put(reply, "?\n");
		return false;
	}
	put_value_at(entry->words + key->word, key->bits, value);
	if (table->match == P4_TERNARY)
		put_value_at(entry->words + table->key_words + key->word, key->bits, second);
	return true;
}

/* Reads all fields of the key, and no word after them. */
static bool read_keys(struct p4_request *request, const struct p4_table_info *table, struct entry *entry)
{
	for (uint32_t i = 0; i < table->key_count; i++) {
		if (!p4_next_word(request) || words_is(&request->words, "=")) {
			struct text *reply = table_error(request, table);

			text_format(reply, "keys given: %u, needed: ", i);
			p4_put_names(reply, table->keys, sizeof(*table->keys), table->key_count);
			text_put(reply, "\n");
			return false;
		}
		if (!read_key(request, table, &table->keys[i], entry))
			return false;
	}
	return true;
}

static void put_params(struct text *reply, const struct p4_action_info *action, const char *separator)
{
	for (uint32_t i = 0; i < action->param_count; i++)
		text_format(reply, "%s%s:%u", i ? separator : "", action->params[i].name,
			    action->params[i].bits);
}

/* Reads an action of this table and its arguments. */
static bool read_action(struct p4_request *request, const struct p4_table_info *table, struct entry *entry)
{
	uint64_t *arguments = entry->words + table->key_words * (table->match == P4_TERNARY ? 2 : 1);
	const struct p4_action_info *action;
	struct text *reply;
	int number;

	p4_next_word(request);
	number = p4_name_index(&request->words, table->actions, sizeof(*action), table->action_count);
	if (number < 0) {
		reply = table_error(request, table);
		text_format(reply, "action '%.*s' is not one of ", WORD_OF(&request->words));
		p4_put_names(reply, table->actions, sizeof(*action), table->action_count);
		text_put(reply, "\n");
		return false;
	}
	action = &table->actions[number];
	entry->action = (uint32_t)number;
	for (uint32_t i = 0; i < action->param_count; i++) {
		const struct p4_param_info *param = &action->params[i];
		enum number result;
		uint128_t value;

		if (!p4_next_word(request)) {
			reply = table_error(request, table);
			text_format(reply, "action %s: arguments given: %u, needed: ", action->name, i);
			put_params(reply, action, ", ");
			text_put(reply, "\n");
			return false;
		}
		result =
			text_read_number(request->words.word, request->words.word_bytes, param->bits, &value);
		if (result != NUMBER_OK) {
			reply = table_error(request, table);
			text_format(reply, "action %s: %s: '%.*s'", action->name, param->name,
				    WORD_OF(&request->words));
			p4_put_number_error(reply, result, param->bits);
			return false;
		}
		put_value_at(arguments + param->word, param->bits, value);
	}
	return true;
}

/* Reads the priority at the end. Entries of ternary tables need a priority; other entries have none. */
static bool read_priority(struct p4_request *request, const struct p4_table_info *table, struct entry *entry)
{
	uint128_t value;

	if (p4_next_word(request)) {
		if (!words_is(&request->words, "priority") || table->match != P4_TERNARY) {
			text_format(table_error(request, table), "the request should end before '%.*s'\n",
				    WORD_OF(&request->words));
			return false;
		}
		p4_next_word(request);
		if (!p4_number_word(request, "priority", 31, &value) || !p4_at_end(request))
			return false;
		entry->priority = (uint32_t)value;
	}
	if (table->match == P4_TERNARY && !entry->priority) {
		text_put(table_error(request, table),
			 "its entries need `priority N` at the end, N from 1 to 2147483647; "
			 "the largest wins\n");
		return false;
	}
	return true;
}

static bool may_change_entries(struct p4_request *request, const struct p4_table_info *table)
{
	if (!table->const_entries && table->key_count)
		return true;
	text_put(table_error(request, table),
		 table->key_count ? "its entries are const in the P4 program\n"
				  : "it has no key, only a default: table default NAME ACTION ARG...\n");
	return false;
}

static void table_set(struct p4_request *request, const struct p4_table_info *table)
{
	struct entry entry = {.priority = 0};

	if (!may_change_entries(request, table) || !read_keys(request, table, &entry))
		return;
	if (!p4_next_word(request) || !words_is(&request->words, "=")) {
		text_put(table_error(request, table), "`= ACTION ARG...` should follow the keys ");
		p4_put_names(&request->reply, table->keys, sizeof(*table->keys), table->key_count);
		text_put(&request->reply, "\n");
		return;
	}
	if (!read_action(request, table, &entry) || !read_priority(request, table, &entry))
		return;
	if (!p4_table_set(p4_table_of(request, table), entry.action,
			  table->match == P4_TERNARY ? entry.priority : entry.length, entry.words)) {
		text_format(table_error(request, table), "full: its size in the P4 program is %u\n",
			    table->size);
		return;
	}
	text_put(&request->reply, "ok\n");
}

static void table_delete(struct p4_request *request, const struct p4_table_info *table)
{
	struct entry entry = {.priority = 0};
	struct p4_row *row;

	if (!may_change_entries(request, table) || !read_keys(request, table, &entry) || !p4_at_end(request))
		return;
	row = p4_table_find(p4_table_of(request, table), entry.length, entry.words);
	if (!row) {
		text_put(table_error(request, table), "no entry has this key\n");
		return;
	}
	p4_table_delete(p4_table_of(request, table), row);
	text_put(&request->reply, "ok\n");
}

static void table_default(struct p4_request *request, const struct p4_table_info *table)
{
	struct entry entry = {.priority = 0};

	if (table->const_default) {
		text_put(table_error(request, table), "its default action is const in the P4 program\n");
		return;
	}
	if (!read_action(request, table, &entry) || !p4_at_end(request))
		return;
	p4_table_set_default(p4_table_of(request, table), entry.action,
			     entry.words + table->key_words * (table->match == P4_TERNARY ? 2 : 1));
	text_put(&request->reply, "ok\n");
}

static void put_action(struct text *reply, const struct p4_table_info *table, struct p4_row *row)
{
	const uint64_t *arguments = p4_arguments(table, row);
	const struct p4_action_info *action;

	if (row->action >= table->action_count) {
		text_put(reply, " none");
		return;
	}
	action = &table->actions[row->action];
	text_format(reply, " %s", action->name);
	for (uint32_t i = 0; i < action->param_count; i++) {
		text_put(reply, " ");
		p4_put_value(reply, value_at(arguments + action->params[i].word, action->params[i].bits),
			     action->params[i].bits);
	}
}

static void put_key(struct text *reply, const struct p4_table_info *table, const struct p4_key_info *key,
		    const struct p4_row *row)
{
	uint128_t mask = 0;
	unsigned length = row->priority;

	text_put(reply, " ");
	p4_put_value(reply, value_at(row->words + key->word, key->bits), key->bits);
	if (table->match == P4_TERNARY)
		mask = value_at(row->words + table->key_words + key->word, key->bits);
	switch (key->match) {
	case P4_LPM:
		if (table->match == P4_TERNARY)
			for (length = 0; mask; mask &= mask - 1)
				length++;
		text_format(reply, "/%u", length);
		break;
	case P4_TERNARY:
		text_put(reply, "&&&");
		p4_put_hex(reply, mask);
		break;
	case P4_RANGE:
		text_put(reply, "..");
		p4_put_value(reply, mask, key->bits);
		break;
	}
}

static void table_dump(struct p4_request *request, const struct p4_table_info *table)
{
	struct p4_table *state = p4_table_of(request, table);
	struct text *reply = &request->reply;

	if (!p4_at_end(request))
		return;
	text_put(reply, "ok\n");
	for (uint32_t number = 0; number < state->used; number++) {
		struct p4_row *row = p4_row(state, number, table->row_bytes);

		text_put(reply, table->name);
		for (uint32_t i = 0; i < table->key_count; i++)
			put_key(reply, table, &table->keys[i], row);
		text_put(reply, " =");
		put_action(reply, table, row);
		if (table->match == P4_TERNARY)
			text_format(reply, " priority %u", row->priority);
		text_put(reply, "\n");
	}
	text_format(reply, "default %s", table->name);
	put_action(reply, table, p4_default_row(state, table->size, table->row_bytes));
	text_put(reply, "\n");
}

/* "NAME KEY:MATCH:BITS,... ACTION(PARAM:BITS,...),...", with - in place of the keys if the table has none. */
static void table_list(struct p4_request *request)
{
	struct text *reply = &request->reply;

	if (!p4_at_end(request))
		return;
	text_put(reply, "ok\n");
	for (uint32_t i = 0; i < request->program->table_count; i++) {
		const struct p4_table_info *table = request->program->tables[i];

		text_format(reply, "%s %s", table->name, table->key_count ? "" : "-");
		for (uint32_t k = 0; k < table->key_count; k++)
			text_format(reply, "%s%s:%s:%u", k ? "," : "", table->keys[k].name,
				    match_names[table->keys[k].match], table->keys[k].bits);
		for (uint32_t a = 0; a < table->action_count; a++) {
			text_format(reply, "%s%s(", a ? "," : " ", table->actions[a].name);
			put_params(reply, &table->actions[a], ",");
			text_put(reply, ")");
		}
		text_put(reply, "\n");
	}
}

void p4_control_table(struct p4_request *request)
{
	static const struct {
		const char *name;
		void (*answer)(struct p4_request *request, const struct p4_table_info *table);
	} requests[] = {
		{"set", table_set},
		{"delete", table_delete},
		{"default", table_default},
		{"dump", table_dump},
	};
	const struct p4_table_info *table;

	p4_next_word(request);
	if (words_is(&request->words, "list")) {
		table_list(request);
		return;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (!words_is(&request->words, requests[i].name))
			continue;
		table = read_table(request);
		if (table)
			requests[i].answer(request, table);
		return;
	}
	text_put(p4_error(request), "table: list, or set, delete, default or dump NAME\n");
}
