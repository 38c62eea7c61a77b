// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Interrupt moderation of a host's device, as NICs have. When the first waiting frame has waited for rx-usecs
 * (ethtool -C), NAPI passes all waiting frames to the stack. With GRO on, the stack merges the segments of a flow.
 *
 * By default rx-usecs is 0: frames bypass the moderation, and each is passed to the stack at its due ns.
 */
#include <linux/ethtool.h>
#include <linux/netdevice.h>

#include "compat.h"
#include "switch.h"

#define MOST_USECS 100000

void bsw_moderate(struct bsw_port *port, struct sk_buff *skb)
{
	skb_queue_tail(&port->waiting, skb);
	if (skb_queue_len(&port->waiting) == 1)
		hrtimer_start(&port->moderation, ns_to_ktime((u64)port->rx_usecs * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_PINNED_SOFT);
}

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	struct bsw_port *port = container_of(timer, struct bsw_port, moderation);

	napi_schedule(&port->napi);
	return HRTIMER_NORESTART;
}

/* A frame that arrives during the poll starts the timer again if it finds the queue empty. */
static int poll(struct napi_struct *napi, int budget)
{
	struct bsw_port *port = container_of(napi, struct bsw_port, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&port->waiting)) != NULL) {
		napi_gro_receive(napi, skb);
		done++;
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

void bsw_moderation_create(struct bsw_port *port, struct net_device *device)
{
	skb_queue_head_init(&port->waiting);
	hrtimer_setup(&port->moderation, interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	netif_napi_add(device, &port->napi, poll);
}

void bsw_moderation_open(struct bsw_port *port)
{
	napi_enable(&port->napi);
}

/* Frames that wait when the device goes down are lost, like those in a NIC's ring. */
void bsw_moderation_stop(struct bsw_port *port)
{
	hrtimer_cancel(&port->moderation);
	napi_disable(&port->napi);
	port->rx_dropped += skb_queue_len(&port->waiting);
	skb_queue_purge(&port->waiting);
}

int bsw_get_coalesce(struct net_device *device, struct ethtool_coalesce *coalesce,
		     struct kernel_ethtool_coalesce *kernel_coalesce, struct netlink_ext_ack *extack)
{
	struct bsw_port *port = netdev_priv(device);

	coalesce->rx_coalesce_usecs = port->rx_usecs;
	return 0;
}

int bsw_set_coalesce(struct net_device *device, struct ethtool_coalesce *coalesce,
		     struct kernel_ethtool_coalesce *kernel_coalesce, struct netlink_ext_ack *extack)
{
	struct bsw_port *port = netdev_priv(device);

	if (coalesce->rx_coalesce_usecs > MOST_USECS)
		return -EINVAL;
	port->rx_usecs = coalesce->rx_coalesce_usecs;
	return 0;
}
