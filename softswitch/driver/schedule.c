// SPDX-License-Identifier: GPL-2.0 OR MIT
/* One timer, set to the next event of the core or the next output, whichever is earlier. The timer's function runs as
 * a softirq and passes outputs to the stack at their due ns, or to the device's interrupt moderation.
 *
 * A frame that no access link delays is processed in the sender's call, without the timer: this saves a timer for each
 * frame. A frame that an access link delays arrives when the timer expires. The order of events is the same, because at
 * equal times the core processes departures before arrivals in both cases.
 *
 * A frame is as late as the kernel's timer is: exactly 0 ns in User-Mode Linux with time travel, if a timer may expire
 * in the ns in which it is set.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ktime.h>

#include "compat.h"
#include "switch.h"

static u64 next_ns(struct core *core)
{
	return min_t(u64, core_next_event_ns(core), core_next_output_ns(core));
}

void bsw_schedule(struct bsw_switch *owner, u64 now_ns)
{
	core_advance(owner->executor.core, now_ns);
	bsw_arm(owner);
}

void bsw_arm(struct bsw_switch *owner)
{
	u64 due_ns = next_ns(owner->executor.core);

	if (owner->delivering || due_ns >= owner->armed_ns)
		return;
	owner->armed_ns = due_ns;
	owner->executor.sleeps++;
	hrtimer_start(&owner->timer, ns_to_ktime(due_ns), HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* A copy of the frame, in its own pages. */
static struct sk_buff *copy_of(struct net_device *device, const struct core_output *output)
{
	struct sk_buff *skb = netdev_alloc_skb_ip_align(device, output->bytes);

	if (skb)
		skb_put_data(skb, output->frame, output->bytes);
	return skb;
}

/* The truesize of a frame in its own pages. The receiver's window depends on truesize, but must not depend on whether
 * the payload stayed in the sender's pages.
 */
static unsigned int truesize(struct bsw_switch *owner, struct net_device *device, uint32_t bytes)
{
	unsigned int *known = &owner->truesizes[bytes];
	struct sk_buff *skb;

	if (!*known) {
		skb = netdev_alloc_skb_ip_align(device, bytes);
		*known = skb ? skb->truesize : SKB_TRUESIZE(bytes);
		kfree_skb(skb);
	}
	return *known;
}

/* Whether two heads of equal length have the same transport header and pseudo-header: a valid checksum is then still
 * valid. TTL, ECN bits and the IPv4 header's own checksum may differ. False for IPv6, VLAN tags and IP options.
 */
static bool same_transport(const uint8_t *before, const uint8_t *after, uint32_t bytes)
{
	const struct ethhdr *ethernet = (const struct ethhdr *)before;
	const struct iphdr *old = (const struct iphdr *)(before + ETH_HLEN);
	const struct iphdr *new = (const struct iphdr *)(after + ETH_HLEN);
	const uint32_t from = ETH_HLEN + offsetof(struct iphdr, saddr);

	return bytes > ETH_HLEN + sizeof(*old) && ethernet->h_proto == htons(ETH_P_IP) &&
	       ((const struct ethhdr *)after)->h_proto == ethernet->h_proto && old->ihl == 5 &&
	       new->ihl == 5 && old->tot_len == new->tot_len && old->protocol == new->protocol &&
	       !memcmp(before + from, after + from, bytes - from);
}

/* The head as the program left it, followed by the payload in the sender's pages. Cannot fail: the head has room, and
 * trimming pages needs no allocation.
 */
static struct sk_buff *from_body(struct bsw_switch *owner, struct net_device *device,
				 const struct core_output *output)
{
	struct sk_buff *skb = output->body;

	/* A TCP socket's frame counts as verified (make_body), as if by a NIC, unless the program changed its length,
	 * transport header or pseudo-header. The stack verifies all other frames.
	 */
	if (output->frame_bytes != output->body_offset || output->bytes != skb->len ||
	    !same_transport(skb->data, output->frame, output->frame_bytes))
		skb->ip_summed = CHECKSUM_NONE;
	__skb_pull(skb, output->body_offset);
	WARN_ON_ONCE(pskb_trim(skb, output->bytes - output->frame_bytes));
	memcpy(skb_push(skb, output->frame_bytes), output->frame, output->frame_bytes);
	skb->truesize = truesize(owner, device, output->bytes);
	return skb;
}

struct sk_buff *bsw_make_skb(struct bsw_switch *owner, struct net_device *device,
			     const struct core_output *output)
{
	return output->body ? from_body(owner, device, output) : copy_of(device, output);
}

/* The frame as an skb of the host's device. NULL if the device is down or memory is out; the loss is counted. */
static struct sk_buff *receive_skb(struct bsw_port *port, struct net_device *device,
				   const struct core_output *output)
{
	struct executor_port *counters = port->counters;
	struct sk_buff *skb = NULL;
	int error = -ENETDOWN;

	if (netif_running(device)) {
		error = -ENOMEM;
		skb = bsw_make_skb(port->owner, device, output);
	}
	if (!skb) {
		kfree_skb(output->body);
		counters->tx_errors++;
		counters->tx_last_errno = -error;
		port->rx_dropped++;
		return NULL;
	}
	skb->protocol = eth_type_trans(skb, device);
	lateness_count(&counters->lateness, output->due_ns, ktime_get_ns(), output->back_to_back);
	counters->tx_frames++;
	counters->tx_bytes += output->bytes;
	port->rx_packets++;
	port->rx_bytes += output->bytes;
	return skb;
}

/* The next due output as an skb; NULL: no more is due. */
static struct sk_buff *take_due(struct bsw_switch *owner)
{
	struct core *core = owner->executor.core;
	u64 now_ns = ktime_get_ns();
	struct core_output output;
	struct sk_buff *skb = NULL;

	core_advance(core, now_ns);
	while (!skb && core_take_output(core, now_ns, &output)) {
		struct net_device *device = owner->devices[output.port];

		skb = receive_skb(netdev_priv(device), device, &output);
		core_release(core, &output);
	}
	return skb;
}

static void deliver(struct sk_buff *skb)
{
	struct bsw_port *port = netdev_priv(skb->dev);

	if (port->rx_usecs)
		bsw_moderate(port, skb);
	else
		netif_receive_skb(skb);
}

static enum hrtimer_restart expire(struct hrtimer *timer)
{
	struct bsw_switch *owner = container_of(timer, struct bsw_switch, timer);
	struct sk_buff *skb;
	u64 now_ns;

	spin_lock(&owner->lock);
	now_ns = ktime_get_ns();
	if (now_ns > owner->armed_ns && now_ns - owner->armed_ns > owner->executor.loop_gap_max_ns)
		owner->executor.loop_gap_max_ns = now_ns - owner->armed_ns;
	owner->executor.loops++;
	owner->delivering = true;
	while ((skb = take_due(owner)) != NULL) {
		spin_unlock(&owner->lock);
		deliver(skb);
		spin_lock(&owner->lock);
	}
	owner->delivering = false;
	owner->armed_ns = next_ns(owner->executor.core);
	if (owner->armed_ns != CORE_NEVER_NS) {
		owner->executor.sleeps++;
		hrtimer_set_expires(timer, ns_to_ktime(owner->armed_ns));
	}
	spin_unlock(&owner->lock);
	return owner->armed_ns == CORE_NEVER_NS ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

void bsw_schedule_init(struct bsw_switch *owner)
{
	owner->armed_ns = CORE_NEVER_NS;
	hrtimer_setup(&owner->timer, expire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
}
