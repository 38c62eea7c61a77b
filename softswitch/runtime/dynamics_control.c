/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests for links that change during a run: schedules of rates, loss, jitter.
 */
#include "dynamics_control.h"
#include "control.h"
#include "core_state.h"
#include "freestanding.h"
#include "request.h"

#define MAX_TIME_NS	  86400000000000ull /* of an entry */
#define MAX_START_NS	  (1ull << 62)
#define MAX_OPPORTUNITIES 1000000ull /* at one instant */

/* Reads a port that has dynamics, or can have them. Returns 0, or the length of an error reply. */
static size_t read_port(struct core *core, struct words *words, struct text *text, struct port **port)
{
	uint64_t number;

	*port = control_read_port(core, words, &number);
	if (!*port)
		return request_refuse_word(text, "no such port", words,
					   "one that the switch was started with");
	if (!(*port)->dynamics && core->dynamics_used == CORE_DYNAMIC_PORTS)
		return request_refuse(text, "8 ports have a schedule, loss or jitter already: no more can");
	return 0;
}

_Static_assert(CORE_DYNAMIC_PORTS == 8, "the message of read_port");

/* Called when the whole request is checked. */
static struct dynamics *dynamics_of(struct core *core, struct port *port)
{
	if (!port->dynamics) {
		port->dynamics = ++core->dynamics_used;
		memset(&core->dynamics[port->dynamics], 0, sizeof(struct dynamics));
	}
	return &core->dynamics[port->dynamics];
}

/* The fraction of a ns is in units of the old rate. Dropping it loses less than one ns. */
static void drop_carry(struct port *port)
{
	port->link.carry = port->head_finish.carry = 0;
}

/* Reads the entry after `last`, from the current word on. Returns 0, or the length of an error reply. */
static size_t read_entry(struct words *words, struct text *text, bool opportunities,
			 const struct rate_entry *last, struct rate_entry *entry)
{
	bool is_first_step = !last && !opportunities;
	size_t error = request_number(text, words, "time in ns", last ? last->at_ns + 1 : !is_first_step,
				      is_first_step ? 0 : MAX_TIME_NS, false, &entry->at_ns);

	if (error)
		return error;
	words_next(words);
	return opportunities ? request_number(text, words, "opportunities", 1, MAX_OPPORTUNITIES, false,
					      &entry->value)
			     : request_number(text, words, "rate in bit/s", REQUEST_MIN_RATE_BPS,
					      REQUEST_MAX_RATE_BPS, true, &entry->value);
}

/* Appends to the port's schedule, which is the last one that was begun. */
static size_t schedule_add(struct core *core, bool opportunities, struct words *words, struct text *text)
{
	struct rate_entry *end = core->rate_entries + core->rate_entries_used;
	const struct rate_schedule *old;
	struct rate_schedule *schedule;
	struct port *port;
	uint32_t count;
	size_t error = read_port(core, words, text, &port);

	if (error)
		return error;
	old = &core->dynamics[port->dynamics].schedule; /* of number 0: empty */
	if (old->count &&
	    (old->started || old->opportunities != opportunities || old->entries + old->count != end))
		return request_refuse(text, "the port's schedule has started, is of the other kind, or was "
					    "followed by another port's: schedule clear");
	/* Entries beyond the used ones belong to nobody: a refused request leaves them there. */
	for (count = 0; words_next(words); count++) {
		if (count == core->config.rate_entries - core->rate_entries_used)
			return request_refuse(text, "schedules full: start the switch with higher "
						    "--rate-entries (driver: "
						    "bufferscope_switch.rate_entries)");
		error = read_entry(words, text, opportunities, old->count + count ? end + count - 1 : NULL,
				   end + count);
		if (error)
			return error;
	}
	if (!count)
		return request_refuse(text, "no entries: give TIME_NS VALUE ...");
	schedule = &dynamics_of(core, port)->schedule;
	if (!schedule->count)
		*schedule = (struct rate_schedule){.entries = end, .opportunities = opportunities};
	schedule->count += count;
	core->rate_entries_used += count;
	return request_accept(text);
}

static size_t schedule_start(struct core *core, struct words *words, struct text *text)
{
	struct rate_schedule *schedule;
	struct port *port;
	uint64_t start_ns;
	size_t error = read_port(core, words, text, &port);

	if (error)
		return error;
	schedule = &core->dynamics[port->dynamics].schedule;
	if (!schedule->count)
		return request_refuse(text,
				      "the port has no schedule: schedule steps, schedule opportunities");
	if (!schedule->opportunities && !schedule->entries[schedule->count - 1].value)
		return request_refuse(text, "the last step has rate 0: an outage must end");
	words_next(words);
	error = request_number(text, words, "start in ns", core->now_ns + 1, MAX_START_NS, false, &start_ns);
	if (error)
		return error;
	if (words_next(words))
		return request_refuse_word(text, "unexpected", words, "schedule start PORT NS");
	schedule->start_ns = start_ns;
	schedule->started = true;
	drop_carry(port);
	return request_accept(text);
}

static size_t schedule_clear(struct core *core, struct words *words, struct text *text)
{
	if (words_next(words))
		return request_refuse_word(text, "unexpected", words, "schedule clear");
	for (uint32_t number = 0; number < PIPELINE_PORTS; number++) {
		struct port *port = &core->ports[number];

		if (port->dynamics) {
			core->dynamics[port->dynamics].schedule = (struct rate_schedule){0};
			drop_carry(port);
		}
	}
	core->rate_entries_used = 0;
	return request_accept(text);
}

size_t schedule_control(struct core *core, struct words *words, struct text *text)
{
	words_next(words);
	if (words_is(words, "steps"))
		return schedule_add(core, false, words, text);
	if (words_is(words, "opportunities"))
		return schedule_add(core, true, words, text);
	if (words_is(words, "start"))
		return schedule_start(core, words, text);
	if (words_is(words, "clear"))
		return schedule_clear(core, words, text);
	return request_refuse_word(text, "unknown request schedule", words,
				   "schedule steps, schedule opportunities, schedule start, schedule clear");
}

size_t loss_control(struct core *core, struct words *words, struct text *text)
{
	struct setting settings[] = {
		{"seed", 0, UINT64_MAX, 0},   {"good", 0, UINT64_MAX, 0},    {"bad", 0, UINT64_MAX, 0},
		{"to_bad", 0, UINT64_MAX, 0}, {"to_good", 0, UINT64_MAX, 0},
	};
	struct port *port;
	size_t error = read_port(core, words, text, &port);

	if (!error)
		error = request_settings(text, words, settings, sizeof(settings) / sizeof(settings[0]), NULL);
	if (error)
		return error;
	dynamics_of(core, port)->loss = (struct loss){
		.random = settings[0].value,
		.seed = settings[0].value,
		.lost = {settings[1].value, settings[2].value},
		.leaves = {settings[3].value, settings[4].value},
		.on = settings[1].value || settings[2].value,
	};
	return request_accept(text);
}

/* Reads quantiles, and stores them if `to` is not NULL. Returns 0, or the length of an error reply. */
static size_t read_quantiles(struct words words, struct text *text, uint64_t *to, uint32_t *count)
{
	uint64_t quantile_ns = 0;

	for (*count = 0; words_next(&words); ++*count) {
		size_t error = request_number(text, &words, "quantile in ns", quantile_ns,
					      REQUEST_MAX_DELAY_NS, false, &quantile_ns);

		if (error)
			return error;
		if (to)
			to[*count] = quantile_ns;
	}
	if (*count == 1 || *count > CORE_QUANTILES)
		return request_refuse(text, "number of quantiles: 0 (no jitter), or 2 to 257");
	return 0;
}

_Static_assert(CORE_QUANTILES == 257, "the messages of read_quantiles");

size_t jitter_control(struct core *core, struct words *words, struct text *text)
{
	struct jitter *jitter;
	struct port *port;
	uint32_t count;
	uint64_t seed;
	size_t error = read_port(core, words, text, &port);

	if (error)
		return error;
	words_next(words);
	error = request_number(text, words, "seed", 0, UINT64_MAX, false, &seed);
	if (!error)
		error = read_quantiles(*words, text, NULL, &count);
	if (error)
		return error;
	jitter = &dynamics_of(core, port)
			  ->jitter; /* keeps exit_ns: the packets on the line are not overtaken */
	jitter->random = jitter->seed = seed;
	read_quantiles(*words, text, jitter->quantiles_ns, &jitter->count);
	return request_accept(text);
}

void dynamics_show(const struct core *core, const struct port *port, struct text *text)
{
	const struct dynamics *dynamics = &core->dynamics[port->dynamics];
	const struct jitter *jitter = &dynamics->jitter;

	if (!port->dynamics)
		return;
	text_put_pair(text, "schedule_entries", dynamics->schedule.count);
	text_put_pair(text, "schedule_opportunities", dynamics->schedule.opportunities);
	text_put_pair(text, "schedule_start", dynamics->schedule.start_ns);
	text_put_pair(text, "loss_seed", dynamics->loss.seed);
	text_put_pair(text, "loss_good", dynamics->loss.lost[0]);
	text_put_pair(text, "loss_bad", dynamics->loss.lost[1]);
	text_put_pair(text, "loss_to_bad", dynamics->loss.leaves[0]);
	text_put_pair(text, "loss_to_good", dynamics->loss.leaves[1]);
	text_put_pair(text, "jitter_seed", jitter->seed);
	text_put_pair(text, "jitter_most", jitter->count ? jitter->quantiles_ns[jitter->count - 1] : 0);
}
