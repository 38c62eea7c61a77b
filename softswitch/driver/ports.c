// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The hosts' ends of the switch's ports: ordinary Ethernet devices, one for each port. A frame arrives at the switch
 * in the ns in which the host transmits it. ndo_start_xmit copies the frame's head into the core, refers to the pages
 * of its payload, and frees its skb. Frames in the switch therefore do not count against their socket (TCP Small
 * Queues), and no queue of the host fills.
 *
 * Frames in the switch are complete, as on a wire: the driver computes their checksums, as a NIC does. Receivers need
 * not verify a TCP socket's frame if the program left its transport header and addresses unchanged (schedule.c: IPv4
 * without options only, and only if the payload stayed in the sender's pages).
 *
 * There is no segmentation offload: the stack segments a socket's super-segments before transmission, so their frames
 * arrive in one ns. An access rate of the port spaces the frames as a NIC would. NETIF_F_SG is on, because the copy
 * gathers scattered frames.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "../../hosts/traffic/kernel_pump/pump.h"
#include "switch.h"

static void gather(uint8_t *to, const void *source, uint32_t bytes)
{
	/* Cannot fail: the skb has at least that many bytes. */
	skb_copy_bits(source, 0, to, bytes);
}

/* An skb that refers to the pages of the sender's skb and becomes the received skb. NULL: the frame is short, its
 * payload is not in pages, or memory is out. The sender's skb is freed at once: TCP must not count a frame on a link
 * as one that its host still holds.
 */
static struct sk_buff *make_body(struct sk_buff *skb, unsigned int head_bytes)
{
	int linear_bytes = skb_zerocopy_headlen(skb);
	struct sk_buff *body;

	if (skb->len <= head_bytes || linear_bytes > head_bytes)
		return NULL;
	body = alloc_skb(NET_IP_ALIGN + pipeline_headroom_bytes + head_bytes, GFP_ATOMIC);
	if (!body)
		return NULL;
	skb_reserve(body, NET_IP_ALIGN + pipeline_headroom_bytes);
	if (skb_zerocopy(body, skb, skb->len, linear_bytes) || !pskb_may_pull(body, head_bytes)) {
		kfree_skb(body);
		return NULL;
	}
	/* The checksum of a TCP socket's frame has just been computed (finish_checksum, or segmentation in the stack).
	 * Other sockets may send a wrong one.
	 */
	body->ip_summed =
		skb->sk && sk_fullsock(skb->sk) && sk_is_tcp(skb->sk) ? CHECKSUM_UNNECESSARY : CHECKSUM_NONE;
	return body;
}

static bool sends_zeros(const struct sk_buff *skb)
{
	return skb->sk && sk_fullsock(skb->sk) && READ_ONCE(skb->sk->sk_mark) == PUMP_ZEROS_MARK &&
	       sk_is_tcp(skb->sk);
}

/* Computes the checksum that the stack left to the device. skb_checksum_help would read the whole frame; if the payload
 * is all zeros, the header suffices. 0 or -errno.
 */
static int finish_checksum(struct sk_buff *skb)
{
	int start = skb_checksum_start_offset(skb), check = start + offsetof(struct tcphdr, check);
	__wsum sum;

	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return 0;
	if (!sends_zeros(skb) || skb_ensure_writable(skb, start + tcp_hdrlen(skb)))
		return skb_checksum_help(skb);
	sum = csum_partial(skb->data + start, tcp_hdrlen(skb), 0);
	*(__sum16 *)(skb->data + check) = csum_fold(sum) ?: CSUM_MANGLED_0;
	skb->ip_summed = CHECKSUM_NONE;
	return 0;
}

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *device)
{
	struct bsw_port *port = netdev_priv(device);
	struct bsw_switch *owner = port->owner;
	struct sk_buff *body;
	u64 now_ns;

	if (finish_checksum(skb))
		port->counters->rx_checksum_missing++; /* out of memory; the run is not valid */
	body = make_body(skb, core_head_bytes());
	skb_tx_timestamp(skb);
	spin_lock(&owner->lock);
	now_ns = ktime_get_ns();
	if (core_receive_from(owner->executor.core, now_ns, port->counters->number, gather, skb, skb->len,
			      body)) {
		port->tx_dropped++;
		kfree_skb(body);
	} else {
		port->tx_packets++;
		port->tx_bytes += skb->len;
		bsw_schedule(owner, now_ns);
	}
	spin_unlock(&owner->lock);
	consume_skb(skb);
	return NETDEV_TX_OK;
}

static int open(struct net_device *device)
{
	bsw_moderation_open(netdev_priv(device));
	netif_carrier_on(device);
	netif_start_queue(device);
	return 0;
}

static int stop(struct net_device *device)
{
	netif_stop_queue(device);
	netif_carrier_off(device);
	bsw_moderation_stop(netdev_priv(device));
	return 0;
}

static void get_stats64(struct net_device *device, struct rtnl_link_stats64 *stats)
{
	struct bsw_port *port = netdev_priv(device);

	spin_lock_bh(&port->owner->lock);
	stats->tx_packets = port->tx_packets;
	stats->tx_bytes = port->tx_bytes;
	stats->tx_dropped = port->tx_dropped;
	stats->rx_packets = port->rx_packets;
	stats->rx_bytes = port->rx_bytes;
	stats->rx_dropped = port->rx_dropped;
	spin_unlock_bh(&port->owner->lock);
}

static const struct net_device_ops device_ops = {
	.ndo_open = open,
	.ndo_stop = stop,
	.ndo_start_xmit = start_xmit,
	.ndo_get_stats64 = get_stats64,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

/* ethtool -i shows the P4 program and the port, also after the device was renamed or moved to another namespace. */
static void get_drvinfo(struct net_device *device, struct ethtool_drvinfo *info)
{
	struct bsw_port *port = netdev_priv(device);

	strscpy(info->driver, KBUILD_MODNAME, sizeof(info->driver));
	strscpy(info->fw_version, pipeline_program_digest, sizeof(info->fw_version));
	snprintf(info->bus_info, sizeof(info->bus_info), "port %u", port->counters->number);
}

static const struct ethtool_ops ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS,
	.get_coalesce = bsw_get_coalesce,
	.set_coalesce = bsw_set_coalesce,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_ts_info = ethtool_op_get_ts_info,
};

/* Like veth: without a queue. */
static void set_up(struct net_device *device)
{
	ether_setup(device);
	device->netdev_ops = &device_ops;
	device->ethtool_ops = &ethtool_ops;
	device->priv_flags |= IFF_NO_QUEUE | IFF_LIVE_ADDR_CHANGE;
	device->hw_features = NETIF_F_SG | NETIF_F_HIGHDMA;
	/* Always on: ethtool cannot switch it off. */
	device->features = device->hw_features | NETIF_F_HW_CSUM;
	device->vlan_features = device->hw_features;
}

static int create_port(struct bsw_switch *owner, u32 index, u32 frame_bytes)
{
	const u8 address[ETH_ALEN] = {0x02, 0xbf, 0, 0, 0, index + 1};
	struct net_device *device;
	struct bsw_port *port;
	char name[IFNAMSIZ];
	int error = -ENOMEM;

	snprintf(name, sizeof(name), "bsw%u", index + 1);
	device = alloc_netdev(sizeof(*port), name, NET_NAME_PREDICTABLE, set_up);
	if (device) {
		port = netdev_priv(device);
		port->owner = owner;
		port->counters = &owner->executor.ports[index];
		eth_hw_addr_set(device, address);
		device->dev_port = index + 1;
		device->max_mtu = frame_bytes - ETH_HLEN - VLAN_HLEN;
		device->mtu = min_t(u32, ETH_DATA_LEN, device->max_mtu);
		netif_carrier_off(device);
		bsw_moderation_create(port, device);
		/* The port is complete before register_netdev: from then on it can be opened and frames can arrive. */
		owner->devices[port->counters->number] = device;
		core_attach_port(owner->executor.core, port->counters->number);
		error = register_netdev(device);
	}
	if (error) {
		pr_err("creating the network device %s: %pe: no switch\n", name, ERR_PTR(error));
		if (device)
			free_netdev(device);
		owner->devices[owner->executor.ports[index].number] = NULL;
	}
	return error;
}

int bsw_ports_create(struct bsw_switch *owner, u32 frame_bytes)
{
	int error = 0;

	for (u32 index = 0; !error && index < owner->executor.port_count; index++)
		error = create_port(owner, index, frame_bytes);
	return error;
}

void bsw_ports_destroy(struct bsw_switch *owner)
{
	for (u32 index = 0; index < PIPELINE_PORTS; index++)
		if (owner->devices[index]) {
			unregister_netdev(owner->devices[index]);
			free_netdev(owner->devices[index]);
			owner->devices[index] = NULL;
		}
}
