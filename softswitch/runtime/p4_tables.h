/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Match-action tables in fixed memory. Lookups are inline, so the compiler specializes them for a program's key and
 * row sizes. Changes by the control plane are in p4_tables.c.
 *
 * A key has one 64-bit word for each field; a field of more than 64 bits has two (high, low). Rows 0 to `used` - 1 are
 * entries, without gaps. Row `size` is the default entry.
 *   exact    a hash table of the keys, linear probing, at most half full
 *   lpm      the same, probed once for each prefix length in use, longest first
 *   ternary  a linear scan by priority: the largest number first, as in P4Runtime; among equals the oldest entry
 */
#ifndef SOFTSWITCH_P4_TABLES_H
#define SOFTSWITCH_P4_TABLES_H

#include "p4_types.h"

/* The match kind of a key or of a table. */
enum p4_match {
	P4_EXACT,
	P4_LPM,
	P4_TERNARY, /* key: value and mask. Table: keys of any kinds, the highest priority wins */
	P4_RANGE,   /* keys only: first and last value, 64 bits at most */
};

enum { P4_MAX_BITS = 128 };

struct p4_key_info {
	const char *name;
	uint16_t bits;
	uint8_t match; /* enum p4_match */
	uint8_t word;  /* index of its value in a row's key */
};

struct p4_param_info {
	const char *name;
	uint16_t bits;
	uint16_t word; /* index of its value in a row's arguments */
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
	uint32_t size;	       /* capacity, without the default entry */
	uint32_t bucket_count; /* a power of two, at least twice the size; 0 for ternary */
	uint32_t row_bytes;
	uint16_t key_words;
	uint16_t argument_words;
	uint8_t match;	     /* enum p4_match of the table */
	bool const_entries;  /* the control plane may not change the entries */
	bool const_default;  /* the control plane may not change the default entry */
	size_t table_offset; /* of its struct p4_table in struct pipeline */
};

/* One entry. words: key, masks and arguments, then the state of a direct meter. Only ternary tables have masks; a range has its last value as its mask. */
struct p4_row {
	uint32_t action;   /* index into the table's actions; action_count: none */
	uint32_t priority; /* ternary: priority; lpm: prefix length */
	uint64_t packets;  /* direct counter */
	uint64_t bytes;
	uint64_t words[];
};

struct p4_table {
	const struct p4_table_info *info;
	uint8_t *rows;
	uint32_t *buckets; /* 0: free; else index of the row + 1 */
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

static inline bool p4_same_key(const uint64_t *a, const uint64_t *b, unsigned key_words)
{
	uint64_t difference = 0;

	for (unsigned word = 0; word < key_words; word++)
		difference |= a[word] ^ b[word];
	return !difference;
}

/* The row with this key, or NULL. length: 0 in exact tables. */
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

/* The mask of the first `length` of `bits` bits. */
static inline uint64_t p4_prefix64(unsigned bits, unsigned length)
{
	return length ? ~(uint64_t)0 >> (64 - bits) & ~(uint64_t)0 << (bits - length) : 0;
}

static inline uint128_t p4_prefix128(unsigned bits, unsigned length)
{
	return length ? ~(uint128_t)0 >> (128 - bits) & ~(uint128_t)0 << (bits - length) : 0;
}

/* Masks the field of `bits` bits that starts at key[word], so that its first `length` bits remain. */
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

/* Masks `key` in place. lpm_word, lpm_bits: position and width of the only prefix field; the other fields are exact. */
static inline struct p4_row *p4_find_lpm(const struct p4_table *table, uint64_t *key, unsigned key_words,
					 unsigned lpm_word, unsigned lpm_bits, uint32_t bucket_count,
					 uint32_t row_bytes)
{
	for (uint32_t i = 0; i < table->length_count; i++) {
		struct p4_row *row;

		p4_mask_prefix(
			key, lpm_word, lpm_bits,
			table->lengths[i]); /* lengths decrease, so a shorter prefix can be masked in place */
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

/* Makes an empty table without a default action. rows: (size + 1) * row_bytes bytes; buckets: bucket_count elements.
 */
void p4_table_init(struct p4_table *table, const struct p4_table_info *info, void *rows, uint32_t *buckets);

/* The entry with this key (and masks, and prefix length) at any priority, or NULL. */
struct p4_row *p4_table_find(struct p4_table *table, uint32_t length, const uint64_t *words);

/* Adds an entry, or replaces the entry with the same key and resets its direct counter, not its meter. words: key, masks and arguments,
 * as in struct p4_row; the caller has already ANDed the value of each ternary and each lpm field with its mask.
 * priority: in lpm tables the prefix length, in exact tables 0. False: the table is full.
 */
bool p4_table_set(struct p4_table *table, uint32_t action, uint32_t priority, const uint64_t *words);

/* row: from p4_table_find. Other rows move, so all pointers to rows become invalid. */
void p4_table_delete(struct p4_table *table, struct p4_row *row);

void p4_table_set_default(struct p4_table *table, uint32_t action, const uint64_t *arguments);

/* The arguments of a row. */
static inline uint64_t *p4_arguments(const struct p4_table_info *info, struct p4_row *row)
{
	return row->words + info->key_words * (info->match == P4_TERNARY ? 2 : 1);
}

#endif
