// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The bottleneck's queue as a Linux qdisc: that of the network device bswq, which `tc` sets. The device is the link of the
 * switch's port: it takes one frame at a time, stops its queue, and runs the qdisc again when the last bit has left.
 *
 * The qdisc gets what it gets in a router that forwards: whole frames with an Ethernet header, without a socket and without
 * a time stamp, with the priority of their TOS. When the qdisc frees a frame, the kernel calls `freed` as if a sender's
 * zero-copy buffer were free again. Nothing else tells of all drops: an empty qdisc may be bypassed, drops at dequeue have no
 * return code, and fq calls skb->destructor for every frame that it keeps.
 *
 * bswq has no address, and its type has no IPv6, so no other frame comes to the qdisc.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/ip.h>
#include <linux/ktime.h>
#include <net/pkt_sched.h>
#include <net/route.h>

#include "../runtime/outer_queue.h"
#include "compat.h"
#include "switch.h"

/* At skb->head, in the headroom: skb->cb is the qdisc's. */
struct ticket {
	struct ubuf_info notice; /* its first field */
	struct bsw_switch *owner;
	void *packet; /* of the core */
	bool has_body;
};

/* Calls from the qdisc come from inside of the core's put and next, or from a timer of the qdisc or its removal. Returns
 * the time for the core.
 */
static u64 enter(struct bsw_switch *owner)
{
	if (owner->in_qdisc)
		return 0;
	spin_lock_bh(&owner->lock);
	return ktime_get_ns();
}

static void leave(struct bsw_switch *owner, u64 now_ns)
{
	if (!now_ns)
		return;
	bsw_arm(owner);
	spin_unlock_bh(&owner->lock);
}

static void freed(struct sk_buff *skb, struct ubuf_info *notice, bool success)
{
	struct ticket *ticket = (struct ticket *)notice;
	u64 now_ns = enter(ticket->owner);

	core_outer_drop(ticket->owner->executor.core, ticket->packet, now_ns);
	leave(ticket->owner, now_ns);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define CALLS_FREED .callback = freed
#else
static const struct ubuf_info_ops notice_ops = {.complete = freed};
#define CALLS_FREED .ops = &notice_ops
#endif

static void put(void *context, const struct core_output *frame)
{
	struct net_device *device = context;
	struct bsw_switch *owner = *(struct bsw_switch **)netdev_priv(device);
	struct sk_buff *skb = bsw_make_skb(owner, device, frame);
	struct ticket *ticket;

	BUILD_BUG_ON(NET_SKB_PAD + NET_IP_ALIGN < sizeof(*ticket));
	if (skb && skb_orphan_frags(skb, GFP_ATOMIC)) { /* of a program that sends with MSG_ZEROCOPY */
		kfree_skb(skb);
		skb = NULL;
	}
	if (!skb) {
		owner->queue_errors->tx_errors++; /* the run is not valid */
		core_outer_drop(owner->executor.core, frame->packet, 0);
		return;
	}
	ticket = (struct ticket *)skb->head;
	*ticket = (struct ticket){
		.notice = {CALLS_FREED, .refcnt = REFCOUNT_INIT(1), .flags = SKBFL_ZEROCOPY_ENABLE},
		.owner = owner,
		.packet = frame->packet,
		.has_body = frame->body != NULL,
	};
	skb_zcopy_init(skb, &ticket->notice);
	skb->dev = device;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = eth_hdr(skb)->h_proto;
	if (skb->protocol == htons(ETH_P_IP) && skb_headlen(skb) >= ETH_HLEN + sizeof(struct iphdr))
		skb->priority = rt_tos2priority(ip_hdr(skb)->tos); /* as ip_forward */
	owner->in_qdisc = true;
	dev_queue_xmit(skb);
	owner->in_qdisc = false;
}

static void next(void *context)
{
	struct net_device *device = context;
	struct bsw_switch *owner = *(struct bsw_switch **)netdev_priv(device);
	struct Qdisc *qdisc;

	rcu_read_lock_bh();
	qdisc = rcu_dereference_bh(netdev_get_tx_queue(device, 0)->qdisc);
	netif_start_queue(device);
	owner->in_qdisc = true;
	bsw_run_qdisc(qdisc);
	owner->in_qdisc = false;
	rcu_read_unlock_bh();
}

static void gather(uint8_t *to, const void *source, uint32_t bytes)
{
	/* Cannot fail: the skb has at least that many bytes. */
	skb_copy_bits(source, 0, to, bytes);
}

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *device)
{
	struct ticket *ticket = (struct ticket *)skb->head;
	bool has_body;
	u64 now_ns;

	if (!skb_zcopy(skb)) { /* the stack's own, if somebody gives the device an address */
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	has_body = ticket->has_body;
	netif_stop_queue(device);
	skb_shinfo(skb)->flags &= ~SKBFL_ALL_ZEROCOPY;
	skb->priority = 0;
	skb_clear_hash(skb);
	now_ns = enter(ticket->owner);
	core_outer_send(ticket->owner->executor.core, ticket->packet, now_ns, gather, skb,
			has_body ? skb : NULL);
	leave(ticket->owner, now_ns);
	if (!has_body)
		consume_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops device_ops = {
	.ndo_start_xmit = start_xmit,
};

static void set_up(struct net_device *device)
{
	device->netdev_ops = &device_ops;
	device->type = ARPHRD_VOID;
	device->flags = IFF_NOARP;
	device->hard_header_len = ETH_HLEN;
	device->mtu = ETH_DATA_LEN;
	device->min_mtu = ETH_MIN_MTU;
	device->max_mtu = ETH_MAX_MTU;
	device->tx_queue_len = DEFAULT_TX_QUEUE_LEN; /* limit of pfifo and bfifo, if tc names none */
	device->features = device->hw_features = NETIF_F_SG | NETIF_F_HIGHDMA;
}

int bsw_queue_create(struct bsw_switch *owner, u32 number)
{
	struct outer_queue queue = {.put = put, .next = next};
	struct net_device *device;
	int error = -ENOMEM;

	if (pipeline_headroom_bytes < sizeof(struct ticket)) {
		pr_err("the P4 program leaves no headroom in frames: no switch\n");
		return -EINVAL;
	}
	device = alloc_netdev(sizeof(owner), "bswq", NET_NAME_PREDICTABLE, set_up);
	if (device) {
		*(struct bsw_switch **)netdev_priv(device) = owner;
		for (u32 index = 0; index < owner->executor.port_count; index++)
			if (owner->executor.ports[index].number == number)
				owner->queue_errors = &owner->executor.ports[index];
		error = register_netdev(device);
	}
	if (error) {
		pr_err("creating the network device bswq: %pe: no switch\n", ERR_PTR(error));
		if (device)
			free_netdev(device);
		return error;
	}
	queue.context = device;
	core_set_outer_queue(owner->executor.core, number, &queue);
	return 0;
}
