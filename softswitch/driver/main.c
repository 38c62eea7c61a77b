// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The soft switch as a network driver in a kernel with virtual time: the same core and compiled P4 program as in the
 * switch process. create() is the table of contents. Boot parameters are parsed here and not by the kernel's parameter
 * types: a bad value then gives one line and no switch, instead of a switch with a default value.
 */
#define pr_fmt(format) KBUILD_MODNAME ": " format

#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/vmalloc.h>

#include "switch.h"

#define DEFAULT_PACKETS	     "8192"
#define DEFAULT_FRAME_BYTES  "9018" /* MTU 9000 with a VLAN tag */
#define DEFAULT_FLOWS	     "16384"
#define DEFAULT_RATE_ENTRIES "0"

static char *ports = "0";
static char *packets = DEFAULT_PACKETS;
static char *frame_bytes = DEFAULT_FRAME_BYTES;
static char *flows = DEFAULT_FLOWS;
static char *rate_entries = DEFAULT_RATE_ENTRIES;
static char *numbers = "";
static char *queue = "";
static char *taps = "";

module_param(ports, charp, 0444);
MODULE_PARM_DESC(ports, "number of ports; each is a network device: bsw1, bsw2... (default 0: no switch)");
module_param(packets, charp, 0444);
MODULE_PARM_DESC(packets, "most packets in the switch at once (default " DEFAULT_PACKETS ")");
module_param(frame_bytes, charp, 0444);
MODULE_PARM_DESC(frame_bytes,
		 "bytes of the longest frame, from its Ethernet header on (default " DEFAULT_FRAME_BYTES ")");
module_param(flows, charp, 0444);
MODULE_PARM_DESC(flows, "most flows with settings of their own (default " DEFAULT_FLOWS ")");
module_param(rate_entries, charp, 0444);
MODULE_PARM_DESC(rate_entries, "most entries of all schedules of rates (default " DEFAULT_RATE_ENTRIES ")");
module_param(numbers, charp, 0444);
MODULE_PARM_DESC(numbers,
		 "the program's numbers of bsw1, bsw2..., with commas between them (default 1,2,...)");
module_param(queue, charp, 0444);
MODULE_PARM_DESC(queue, "number of the port whose queue is the qdisc of bswq (default: none)");
module_param(taps, charp, 0444);
MODULE_PARM_DESC(taps,
		 "numbers of the sender's and the queue's port, with a comma: their headers become captures");

static void measure(struct executor *executor)
{
	bsw_taps_flush();
	executor->mono_ns = ktime_get_ns();
	executor->realtime_minus_mono_ns = ktime_to_ns(ktime_mono_to_real(0));
}

static struct bsw_switch the_switch = {
	.lock = __SPIN_LOCK_UNLOCKED(the_switch.lock),
	.executor = {.name = "driver", .measure = measure},
};

static int __init read_number(const char *name, const char *text, u32 least, u32 most, u32 *number)
{
	if (!kstrtou32(text, 0, number) && *number >= least && *number <= most)
		return 0;
	pr_err("%s.%s=%s: must be a whole number from %u to %u: no switch\n", KBUILD_MODNAME, name, text,
	       least, most);
	return -EINVAL;
}

static int __init read_parameters(struct core_config *config, u32 *port_count)
{
	int error = read_number("ports", ports, 0, EXECUTOR_MAX_PORTS, port_count);

	if (!error)
		error = read_number("packets", packets, 16, CORE_MAX_PACKETS, &config->packets);
	if (!error)
		error = read_number("frame_bytes", frame_bytes, EXECUTOR_MIN_FRAME_BYTES,
				    CORE_MAX_FRAME_BYTES, &config->frame_bytes);
	if (!error)
		error = read_number("flows", flows, 0, CORE_MAX_FLOWS, &config->flows);
	if (!error)
		error = read_number("rate_entries", rate_entries, 0, CORE_MAX_RATE_ENTRIES,
				    &config->rate_entries);
	return error;
}

/* Writes the program's number of each port to its counters. */
static int __init number_ports(struct bsw_switch *owner)
{
	char list[256], *rest = list;

	for (u32 index = 0; index < owner->executor.port_count; index++)
		owner->executor.ports[index].number = index + 1;
	if (!*numbers)
		return 0;
	strscpy(list, numbers, sizeof(list));
	for (u32 index = 0; index < owner->executor.port_count; index++) {
		u32 number;
		int error =
			read_number("numbers", strsep(&rest, ",") ?: "", 0, PIPELINE_DROP_PORT - 1, &number);

		for (u32 earlier = 0; !error && earlier < index; earlier++)
			if (owner->executor.ports[earlier].number == number) {
				pr_err("%s.numbers=%s: has %u twice: no switch\n", KBUILD_MODNAME, numbers,
				       number);
				error = -EINVAL;
			}
		if (error)
			return error;
		owner->executor.ports[index].number = number;
	}
	return 0;
}

static int __init create_queue(struct bsw_switch *owner)
{
	u32 number;
	int error;

	if (!*queue)
		return 0;
	error = read_number("queue", queue, 0, PIPELINE_DROP_PORT - 1, &number);
	if (!error && !owner->devices[number]) {
		pr_err("%s.queue=%u: is no port of the switch: no switch\n", KBUILD_MODNAME, number);
		error = -ENODEV;
	}
	return error ?: bsw_queue_create(owner, number);
}

static int __init create_taps(struct bsw_switch *owner)
{
	char list[32], *rest = list;
	u32 numbers[2];
	int error = 0;

	if (!*taps)
		return 0;
	strscpy(list, taps, sizeof(list));
	for (int side = 0; !error && side < 2; side++)
		error = read_number("taps", strsep(&rest, ",") ?: "", 0, PIPELINE_DROP_PORT - 1,
				    &numbers[side]);
	return error ?: bsw_taps_create(&owner->executor, numbers);
}

static void read_body(uint8_t *to, const void *body, uint32_t offset, uint32_t bytes)
{
	/* Cannot fail: the body is as long as the frame. */
	skb_copy_bits(body, offset, to, bytes);
}

static void drop_body(void *body)
{
	consume_skb(body);
}

static int __init create_core(struct bsw_switch *owner, const struct core_config *config)
{
	size_t bytes = core_memory_bytes(config);

	owner->memory = vmalloc(bytes);
	owner->executor.ports =
		vzalloc(array_size(owner->executor.port_count, sizeof(*owner->executor.ports)));
	owner->truesizes = vzalloc(
		array_size(config->frame_bytes + pipeline_headroom_bytes + 1, sizeof(*owner->truesizes)));
	if (!owner->memory || !owner->executor.ports || !owner->truesizes) {
		pr_err("allocating %zu MiB for %u packets: out of memory: give fewer %s.packets, or more "
		       "mem=: no switch\n",
		       bytes >> 20, config->packets, KBUILD_MODNAME);
		return -ENOMEM;
	}
	owner->executor.core = core_create(owner->memory, config);
	return 0;
}

static void __init destroy(struct bsw_switch *owner)
{
	bsw_ports_destroy(owner);
	hrtimer_cancel(&owner->timer);
	owner->executor.core = NULL;
	vfree(owner->truesizes);
	vfree(owner->executor.ports);
	vfree(owner->memory);
}

static int __init create(struct bsw_switch *owner)
{
	struct core_config config = {
		.read_body = read_body,
		.drop_body = drop_body,
		.tap = *taps ? bsw_taps_record : NULL,
	};
	u32 port_count;
	int error = read_parameters(&config, &port_count);

	if (error || !port_count)
		return error;
	owner->executor.port_count = port_count;
	bsw_schedule_init(owner);
	error = create_core(owner, &config);
	if (!error)
		error = number_ports(owner);
	if (!error)
		error = bsw_ports_create(owner, config.frame_bytes);
	if (!error)
		error = create_queue(owner);
	if (!error)
		error = create_taps(owner);
	if (error)
		destroy(owner);
	else
		pr_info("%s, %u ports, %u packets of %u bytes\n", pipeline_program_name, port_count,
			config.packets, config.frame_bytes);
	return error;
}

/* The control device is created even if there is no switch: opening it then fails with ENODEV. */
static int __init start(void)
{
	int error = create(&the_switch);
	int control_error = bsw_control_create(&the_switch);

	return error ? error : control_error;
}

module_init(start);

MODULE_DESCRIPTION("bufferscope's soft switch: a compiled P4 program between network devices");
MODULE_LICENSE("Dual MIT/GPL");
