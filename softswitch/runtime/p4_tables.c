/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Changes of tables by the control plane. Rows stay dense. Buckets stay at most half full, so a lookup always ends.
 * Nothing here is on the packet path.
 */
#include "p4_tables.h"

static uint32_t row_number(const struct p4_table *table, const struct p4_row *row)
{
	return (uint32_t)(((const uint8_t *)row - table->rows) / table->info->row_bytes);
}

static bool hashed(const struct p4_table_info *info)
{
	return info->match != P4_TERNARY;
}

/* The number of a row's words that take part in a match: the key, and the masks if the table has them. */
static uint32_t match_words(const struct p4_table_info *info)
{
	return info->key_words * (hashed(info) ? 1 : 2);
}

void p4_table_init(struct p4_table *table, const struct p4_table_info *info, void *rows, uint32_t *buckets)
{
	__builtin_memset(table, 0, sizeof(*table));
	table->info = info;
	table->rows = rows;
	table->buckets = buckets;
	__builtin_memset(rows, 0, (size_t)(info->size + 1) * info->row_bytes);
	if (buckets)
		__builtin_memset(buckets, 0, (size_t)info->bucket_count * sizeof(*buckets));
	p4_row(table, info->size, info->row_bytes)->action = info->action_count;
}

/* The bucket that holds row `number`. */
static uint32_t bucket_of(const struct p4_table *table, uint32_t number)
{
	const struct p4_table_info *info = table->info;
	const struct p4_row *row = p4_row(table, number, info->row_bytes);
	uint32_t bucket = p4_hash(row->words, info->key_words, row->priority) & (info->bucket_count - 1);

	while (table->buckets[bucket] != number + 1)
		bucket = (bucket + 1) & (info->bucket_count - 1);
	return bucket;
}

static void bucket_add(struct p4_table *table, uint32_t number)
{
	const struct p4_table_info *info = table->info;
	const struct p4_row *row = p4_row(table, number, info->row_bytes);
	uint32_t bucket = p4_hash(row->words, info->key_words, row->priority) & (info->bucket_count - 1);

	while (table->buckets[bucket])
		bucket = (bucket + 1) & (info->bucket_count - 1);
	table->buckets[bucket] = number + 1;
}

/* Frees a bucket and closes the gap, so that probing needs no tombstones (Knuth 6.4, algorithm R). */
static void bucket_remove(struct p4_table *table, uint32_t gap)
{
	const struct p4_table_info *info = table->info;
	uint32_t mask = info->bucket_count - 1, bucket = gap;

	for (;;) {
		const struct p4_row *row;
		uint32_t home;

		bucket = (bucket + 1) & mask;
		if (!table->buckets[bucket])
			break;
		row = p4_row(table, table->buckets[bucket] - 1, info->row_bytes);
		home = p4_hash(row->words, info->key_words, row->priority) & mask;
		if (((bucket - home) & mask) >= ((bucket - gap) & mask)) {
			table->buckets[gap] = table->buckets[bucket];
			gap = bucket;
		}
	}
	table->buckets[gap] = 0;
}

/* Updates the list of prefix lengths in use. change: 1 if a row of this length was added, -1 if one was deleted. */
static void count_length(struct p4_table *table, uint32_t length, int change)
{
	uint32_t at = 0;

	if (table->info->match != P4_LPM)
		return;
	table->length_rows[length] += (uint32_t)change;
	while (at < table->length_count && table->lengths[at] > length)
		at++;
	if (change > 0 && table->length_rows[length] == 1) {
		for (uint32_t i = table->length_count++; i > at; i--)
			table->lengths[i] = table->lengths[i - 1];
		table->lengths[at] = (uint8_t)length;
	} else if (change < 0 && table->length_rows[length] == 0) {
		table->length_count--;
		for (uint32_t i = at; i < table->length_count; i++)
			table->lengths[i] = table->lengths[i + 1];
	}
}

struct p4_row *p4_table_find(struct p4_table *table, uint32_t length, const uint64_t *words)
{
	const struct p4_table_info *info = table->info;

	if (hashed(info))
		return p4_find_hashed(table, words, info->key_words, length, info->bucket_count,
				      info->row_bytes);
	for (uint32_t number = 0; number < table->used; number++) {
		struct p4_row *row = p4_row(table, number, info->row_bytes);

		if (p4_same_key(row->words, words, match_words(info)))
			return row;
	}
	return NULL;
}

static void row_fill(const struct p4_table_info *info, struct p4_row *row, uint32_t action, uint32_t priority,
		     const uint64_t *words)
{
	row->action = action;
	row->priority = priority;
	row->packets = 0;
	row->bytes = 0;
	__builtin_memcpy(row->words, words, (match_words(info) + info->argument_words) * sizeof(*words));
}

bool p4_table_set(struct p4_table *table, uint32_t action, uint32_t priority, const uint64_t *words)
{
	const struct p4_table_info *info = table->info;
	struct p4_row *row = p4_table_find(table, hashed(info) ? priority : 0, words);
	uint32_t at;

	if (row && (hashed(info) || row->priority == priority)) {
		row_fill(info, row, action, priority, words);
		return true;
	}
	if (row)
		p4_table_delete(table, row);
	if (table->used == info->size)
		return false;
	at = table->used++;
	if (!hashed(info)) {
		while (at > 0 && p4_row(table, at - 1, info->row_bytes)->priority < priority)
			at--;
		row = p4_row(table, at, info->row_bytes);
		__builtin_memmove((uint8_t *)row + info->row_bytes, row,
				  (size_t)(table->used - 1 - at) * info->row_bytes);
	}
	row = p4_row(table, at, info->row_bytes);
	__builtin_memset(row, 0, info->row_bytes);
	row_fill(info, row, action, priority, words);
	if (hashed(info))
		bucket_add(table, at);
	count_length(table, priority, 1);
	return true;
}

void p4_table_delete(struct p4_table *table, struct p4_row *row)
{
	const struct p4_table_info *info = table->info;
	uint32_t number = row_number(table, row), last = table->used - 1;

	count_length(table, row->priority, -1);
	if (hashed(info)) {
		bucket_remove(table, bucket_of(table, number));
		if (number != last) {
			uint32_t bucket = bucket_of(table, last);

			__builtin_memcpy(row, p4_row(table, last, info->row_bytes), info->row_bytes);
			table->buckets[bucket] = number + 1;
		}
	} else {
		__builtin_memmove(row, (uint8_t *)row + info->row_bytes,
				  (size_t)(last - number) * info->row_bytes);
	}
	table->used--;
}

void p4_table_set_default(struct p4_table *table, uint32_t action, const uint64_t *arguments)
{
	const struct p4_table_info *info = table->info;
	struct p4_row *row = p4_row(table, info->size, info->row_bytes);

	row->action = action;
	__builtin_memcpy(p4_arguments(info, row), arguments, info->argument_words * sizeof(*arguments));
}
