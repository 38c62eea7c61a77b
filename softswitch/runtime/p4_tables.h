/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Match-action tables in fixed memory. Lookups are inline, so that a compiled program's constants (words of a key,
 * size of a row) reach them; what the control plane does is in p4_tables.c.
 *
 * A key is one 64-bit word a field, two (high, low) for fields of more than 64 bits. Rows are dense: row i of `used`,
 * and the default entry behind the last (row `size`).
 *   exact    hash of the key, linear probing, at most half full
 *   lpm      the same, once for each prefix length in use, longest first
 *   ternary  rows in order of priority (the largest number first, as in P4Runtime; among equals the oldest), scanned
 */
#ifndef SOFTSWITCH_P4_TABLES_H
#define SOFTSWITCH_P4_TABLES_H

#include "p4_types.h"

enum p4_match {
	P4_EXACT,
	P4_LPM,
	P4_TERNARY, /* of keys: value and mask; of tables: any mixture, found by priority */
	P4_RANGE,   /* of keys only: first and last value, 64 bits at most */
};

enum { P4_MAX_BITS = 128 };

struct p4_key_info {
	const char *name;
	uint16_t bits;
	uint8_t match; /* enum p4_match */
	uint8_t word;  /* where its value starts in a row's key */
};

struct p4_param_info {
	const char *name;
	uint16_t bits;
	uint16_t word; /* where its value starts in a row's arguments */
};

struct p4_action_info {
	const char *name;
	const struct p4_param_info *params;
	uint32_t param_count;
};

struct p4_table_info {
	const char *name;
	const struct p4_key_info *keys;
	const struct p4_action_info *actions;
	uint32_t key_count;
	uint32_t action_count;
	uint32_t size;	       /* entries it can hold, the default not counted */
	uint32_t bucket_count; /* a power of two, at least twice the size; 0 for ternary */
	uint32_t row_bytes;
	uint16_t key_words;
	uint16_t argument_words;
	uint8_t match;	     /* enum p4_match of the table */
	bool const_entries;  /* neither the entries ... */
	bool const_default;  /* ... nor the default entry may be changed */
	size_t table_offset; /* of its struct p4_table in struct pipeline */
};

/* Key, masks and arguments of one entry. Exact tables have no masks; a range keeps its last value as the mask. */
struct p4_row {
	uint32_t action;   /* index into the table's actions; action_count: none */
	uint32_t priority; /* ternary: its priority; lpm: length of its prefix */
	uint64_t packets;  /* direct counter */
	uint64_t bytes;
	uint64_t words[];
};

struct p4_table {
	const struct p4_table_info *info;
	uint8_t *rows;
	uint32_t *buckets; /* 0: free, else number of the row + 1 */
	uint32_t used;
	uint32_t length_count; /* lpm: prefix lengths in use, longest first */
	uint8_t lengths[P4_MAX_BITS + 1];
	uint32_t length_rows[P4_MAX_BITS + 1]; /* rows of each length */
};

static inline struct p4_row *p4_row(const struct p4_table *table, uint32_t number, uint32_t row_bytes)
{
	return (struct p4_row *)(table->rows + (size_t)number * row_bytes);
}

static inline uint32_t p4_hash(const uint64_t *key, unsigned key_words, uint32_t length)
{
	uint64_t hash = length;

	for (unsigned word = 0; word < key_words; word++) {
		hash = (hash ^ key[word]) * 0x9e3779b97f4a7c15;
		hash ^= hash >> 32;
	}
	return (uint32_t)hash;
}

static inline bool p4_same_key(const uint64_t *one, const uint64_t *other, unsigned key_words)
{
	uint64_t difference = 0;

	for (unsigned word = 0; word < key_words; word++)
		difference |= one[word] ^ other[word];
	return !difference;
}

/* NULL when there is none. length: 0 in exact tables. */
static inline struct p4_row *p4_find_hashed(const struct p4_table *table, const uint64_t *key,
					    unsigned key_words, uint32_t length, uint32_t bucket_count,
					    uint32_t row_bytes)
{
	uint32_t bucket = p4_hash(key, key_words, length);

	for (;; bucket++) {
		uint32_t number = table->buckets[bucket & (bucket_count - 1)];
		struct p4_row *row;

		if (!number)
			return NULL;
		row = p4_row(table, number - 1, row_bytes);
		if (row->priority == length && p4_same_key(row->words, key, key_words))
			return row;
	}
}

static inline struct p4_row *p4_find_exact(const struct p4_table *table, const uint64_t *key,
					   unsigned key_words, uint32_t bucket_count, uint32_t row_bytes)
{
	return p4_find_hashed(table, key, key_words, 0, bucket_count, row_bytes);
}

/* The low words of a prefix: `bits` wide, of which the first `length` count. */
static inline uint64_t p4_prefix64(unsigned bits, unsigned length)
{
	return length ? ~(uint64_t)0 >> (64 - bits) & ~(uint64_t)0 << (bits - length) : 0;
}

static inline uint128_t p4_prefix128(unsigned bits, unsigned length)
{
	return length ? ~(uint128_t)0 >> (128 - bits) & ~(uint128_t)0 << (bits - length) : 0;
}

/* Masks the prefix in `key`, which starts at `word` and has `bits`. */
static inline void p4_mask_prefix(uint64_t *key, unsigned word, unsigned bits, unsigned length)
{
	if (bits <= 64) {
		key[word] &= p4_prefix64(bits, length);
	} else {
		uint128_t mask = p4_prefix128(bits, length);

		key[word] &= (uint64_t)(mask >> 64);
		key[word + 1] &= (uint64_t)mask;
	}
}

/* key is changed. lpm_word, lpm_bits: the one field that is a prefix; the others are exact. */
static inline struct p4_row *p4_find_lpm(const struct p4_table *table, uint64_t *key, unsigned key_words,
					 unsigned lpm_word, unsigned lpm_bits, uint32_t bucket_count,
					 uint32_t row_bytes)
{
	for (uint32_t i = 0; i < table->length_count; i++) {
		struct p4_row *row;

		p4_mask_prefix(key, lpm_word, lpm_bits, table->lengths[i]); /* ever shorter */
		row = p4_find_hashed(table, key, key_words, table->lengths[i], bucket_count, row_bytes);
		if (row)
			return row;
	}
	return NULL;
}

/* range_words: bit i is set when word i of the key is a range. */
static inline struct p4_row *p4_find_ternary(const struct p4_table *table, const uint64_t *key,
					     unsigned key_words, uint64_t range_words, uint32_t row_bytes)
{
	for (uint32_t number = 0; number < table->used; number++) {
		struct p4_row *row = p4_row(table, number, row_bytes);
		bool same = true;

		for (unsigned word = 0; word < key_words; word++) {
			uint64_t value = row->words[word], mask = row->words[key_words + word];

			if (range_words >> word & 1)
				same &= key[word] >= value && key[word] <= mask;
			else
				same &= (key[word] & mask) == value;
		}
		if (same)
			return row;
	}
	return NULL;
}

static inline struct p4_row *p4_default_row(const struct p4_table *table, uint32_t size, uint32_t row_bytes)
{
	return p4_row(table, size, row_bytes);
}

/* rows: (size + 1) * row_bytes; buckets: bucket_count. Empty, no default action. */
void p4_table_init(struct p4_table *table, const struct p4_table_info *info, void *rows, uint32_t *buckets);

/* The words of a row of this table: keys (twice with masks), arguments. */
uint32_t p4_row_words(const struct p4_table_info *info);

/* The entry with this key (and mask, and prefix length), whatever its priority; NULL when there is none. */
struct p4_row *p4_table_find(struct p4_table *table, uint32_t length, const uint64_t *words);

/* Adds an entry, or replaces the one with the same key, whose direct counter then starts again. words: of the whole
 * row, values masked. priority: of ternary tables; the prefix length in lpm tables, 0 in exact ones.
 * False when the table is full.
 */
bool p4_table_set(struct p4_table *table, uint32_t action, uint32_t priority, const uint64_t *words);

/* row: one of p4_table_find. The rows behind it move. */
void p4_table_delete(struct p4_table *table, struct p4_row *row);

void p4_table_set_default(struct p4_table *table, uint32_t action, const uint64_t *arguments);

/* Where the arguments of a row start. */
static inline uint64_t *p4_arguments(const struct p4_table_info *info, struct p4_row *row)
{
	return row->words + info->key_words * (info->match == P4_TERNARY ? 2 : 1);
}

#endif
