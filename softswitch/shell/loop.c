/* SPDX-License-Identifier: MIT
 * The packet loop, the only thread. A turn passes frames of all rings to the core in the order of arrival: at most
 * READ_BATCH frames, which arrived up to now - horizon. Then it advances virtual time to now - horizon, or to the
 * arrival of the first such frame that is still in a ring, hands due outputs to the kernel, and sleeps until there is
 * work again.
 *
 * The horizon is assumed to bound the time from a frame's stamp until the frame is in a ring. All arrivals before
 * now - horizon are then in the rings. If every output's propagation delay exceeds the horizon, the horizon makes
 * no output late.
 *
 * No output that an arrival causes is due before arrival + lookahead, so the loop may read the arrival late. While
 * traffic flows the loop sleeps for horizon + half of the lookahead (at most MAX_PATIENCE_NS), or until the next output
 * is due. Due outputs wake the loop up, arrivals do not. This delays only the clones to mirror ports.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>

#include "shell.h"

enum {
	READ_BATCH = 64,	  /* frames read before outputs are sent */
	MAX_WAKE_COST_NS = 30000, /* a longer time is preemption, not wake-up latency */
	WAKE_SPREAD_NS = 2000,
	MAX_PATIENCE_NS = 250000,   /* bounds the lateness of clones, and how full the rings get */
	CLOCK_SAMPLE_NS = 1000000,  /* stamps are wrong from a CLOCK_REALTIME step to the next sample */
	IDLE_NS = 100000000,	    /* while idle the clock offset is sampled at least this often */
	CONTROL_EVERY_NS = 1000000, /* the control socket is polled at least this often */
};

struct loop {
	struct shell *shell;
	struct control_socket *control;
	struct pollfd list[1 + 1 + SHELL_MAX_CLIENTS + EXECUTOR_MAX_PORTS];
	uint64_t wake_cost_ns;
	uint64_t turn_ns;    /* start of this turn */
	uint64_t control_ns; /* when the control socket was last polled */
	uint64_t sampled_ns; /* when the clock offset was last sampled */
	bool busy;	     /* this turn read frames */
	bool stop;
};

static struct port_io *earliest_frame(struct shell *shell)
{
	struct port_io *first = NULL;

	for (uint32_t index = 0; index < shell->port_count; index++) {
		struct port_io *port = &shell->ports[index];

		if (ring_peek(&port->ring, &shell->clock) &&
		    (!first || port->ring.head_ns < first->ring.head_ns))
			first = port;
	}
	return first;
}

/* Reads at most READ_BATCH frames that arrived up to limit_ns. Returns the time to which the core may advance. */
static uint64_t read_frames(struct loop *loop, uint64_t limit_ns)
{
	struct shell *shell = loop->shell;
	struct port_io *port;
	struct ring_frame frame;

	for (int count = 0; count < READ_BATCH && !outputs_are_congested(shell); count++) {
		port = earliest_frame(shell);
		if (!port || port->ring.head_ns > limit_ns)
			return limit_ns;
		ring_take(&port->ring, &frame);
		/* The core counts the frames that it refuses. */
		loop->busy = true;
		core_receive(shell->core, frame.arrival_ns, port->number, frame.bytes, frame.length);
		ring_give_back(&port->ring);
	}
	port = earliest_frame(shell);
	return port && port->ring.head_ns < limit_ns ? port->ring.head_ns : limit_ns;
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* The longest allowed delay from an event's virtual time to its processing. */
static uint64_t patience_ns(const struct shell *shell)
{
	uint64_t patience_ns = core_lookahead_ns(shell->core);

	/* Half of the lookahead remains for the horizon and for waking up late. */
	return shell->horizon_ns + earlier(patience_ns / 2, MAX_PATIENCE_NS);
}

/* The time at which the loop has work again, unless a frame or a request arrives earlier. */
static uint64_t next_wake_ns(struct loop *loop, uint64_t now_ns)
{
	struct shell *shell = loop->shell;
	uint64_t wake_ns = now_ns + (loop->busy ? patience_ns(shell) : IDLE_NS);
	uint64_t event_ns = core_next_event_ns(shell->core);
	struct port_io *port = earliest_frame(shell);

	if (port)
		event_ns = earlier(event_ns, port->ring.head_ns);
	/* While congested the loop leaves frames in the rings, and virtual time cannot pass the first of them. To wake up
	 * for this frame or for later events would be busy waiting: the next retry wakes the loop. */
	if (event_ns != CORE_NEVER_NS && !outputs_are_congested(shell))
		wake_ns = earlier(wake_ns, event_ns + patience_ns(shell));
	wake_ns = earlier(wake_ns, outputs_retry_ns(shell));
	return earlier(wake_ns, core_next_output_ns(shell->core));
}

/* Returns whether a frame, a request or a signal arrived. */
static bool poll_and_serve(struct loop *loop, uint64_t sleep_ns)
{
	struct shell *shell = loop->shell;
	struct timespec timeout = {(time_t)(sleep_ns / 1000000000), (long)(sleep_ns % 1000000000)};
	uint32_t control_count = control_poll_list(loop->control, loop->list + 1);
	uint32_t count = 1 + control_count;
	int ready;

	/* A frame that is already in a ring is processed at its time and must not end the sleep. */
	if (!loop->busy && !earliest_frame(shell))
		for (uint32_t index = 0; index < shell->port_count; index++)
			loop->list[count++] =
				(struct pollfd){.fd = shell->ports[index].ring.fd, .events = POLLIN};
	ready = ppoll(loop->list, count, &timeout, NULL);
	loop->control_ns = mono_now_ns();
	if (ready <= 0)
		return false;
	for (uint32_t index = 1 + control_count; index < count; index++)
		if (loop->list[index].revents & POLLERR)
			ring_clear_error(&shell->ports[index - 1 - control_count].ring);
	if (loop->list[0].revents)
		loop->stop = true;
	control_serve(loop->control, shell, loop->list + 1, control_count);
	return true;
}

/* Keeps the longest gap: the work of one turn, or an oversleep. */
static void note_gap(struct shell *shell, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns > from_ns && to_ns - from_ns > shell->executor.loop_gap_max_ns)
		shell->executor.loop_gap_max_ns = to_ns - from_ns;
}

/* A moving average of the wake-up latency: the timer's interrupt and the CPU's exit from idle. */
static void learn_wake_cost(struct loop *loop, uint64_t wake_ns, uint64_t woken_ns)
{
	uint64_t late_ns = woken_ns > wake_ns ? woken_ns - wake_ns : 0;

	if (late_ns < MAX_WAKE_COST_NS)
		loop->wake_cost_ns = (15 * loop->wake_cost_ns + late_ns) / 16;
}

static inline void relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

/* With `watch`: sleeps until shortly before the output is due, then polls the clock. Without: sleeps until it is due. */
static void sleep_until_output(struct loop *loop, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t early_ns = loop->shell->watch ? loop->wake_cost_ns + WAKE_SPREAD_NS : 0;
	uint64_t wake_ns = due_ns - earlier(due_ns, early_ns);

	if (wake_ns > now_ns) {
		loop->shell->executor.sleeps++;
		if (poll_and_serve(loop, wake_ns - now_ns))
			return;
		learn_wake_cost(loop, wake_ns, mono_now_ns());
	}
	while (loop->shell->watch && mono_now_ns() < due_ns)
		relax();
}

static void rest(struct loop *loop)
{
	struct shell *shell = loop->shell;
	uint64_t now_ns = mono_now_ns();
	uint64_t wake_ns = next_wake_ns(loop, now_ns);

	note_gap(shell, loop->turn_ns, now_ns);
	if (now_ns - loop->control_ns > CONTROL_EVERY_NS)
		poll_and_serve(loop, 0); /* outputs may be so dense that the loop never sleeps */
	if (wake_ns > now_ns && !shell->spin) {
		if (wake_ns == core_next_output_ns(shell->core)) {
			sleep_until_output(loop, now_ns, wake_ns);
		} else {
			shell->executor.sleeps++;
			poll_and_serve(loop, wake_ns - now_ns);
		}
		note_gap(shell, wake_ns, mono_now_ns());
	}
}

static void turn(struct loop *loop)
{
	struct shell *shell = loop->shell;

	loop->turn_ns = mono_now_ns();
	shell->executor.loops++;
	if (loop->turn_ns - loop->sampled_ns >= CLOCK_SAMPLE_NS) {
		clock_offset_sample(&shell->clock); /* counts a step: arrivals near a step are wrong */
		loop->sampled_ns = loop->turn_ns;
	}
	loop->busy = false;
	if (core_next_output_ns(shell->core) <= loop->turn_ns)
		outputs_send_due(shell, loop->turn_ns);
	core_advance(shell->core, read_frames(loop, loop->turn_ns - shell->horizon_ns));
	outputs_send_due(shell, mono_now_ns());
	rest(loop);
}

void loop_run(struct shell *shell, struct control_socket *control, int signal_fd)
{
	struct loop loop = {.shell = shell, .control = control};

	loop.list[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	while (!loop.stop)
		turn(&loop);
}
