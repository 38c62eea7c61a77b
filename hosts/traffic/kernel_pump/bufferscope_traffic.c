// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Each open file of the device is a client with its own thread. A socket's callbacks, which run in softirqs, put the
 * socket on the client's list. The thread then sends or receives, as the program would after epoll_wait.
 */
#define pr_fmt(format) KBUILD_MODNAME ": " format

#include <linux/bvec.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "pump.h"

struct client {
	spinlock_t lock; /* of the lists and counts; also taken in softirqs */
	struct list_head sockets, ready, counted;
	struct task_struct *thread;
	wait_queue_head_t has_work, has_counts;
	struct mutex mutex; /* held by ioctls, and by the thread while it serves sockets */
};

struct pumped {
	struct client *client;
	struct socket *socket;
	struct list_head node, ready, counted; /* empty: not on that list */
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	bool sends;
	u64 bytes; /* to send; 0: until PUMP_STOP */
	int error;
	u64 written_bytes;
	struct pump_count count;
};

static bool enabled = true;
module_param(enabled, bool, 0444);
MODULE_PARM_DESC(enabled, "make the device; without it programs send and receive themselves");

/* The payload, and also the memory to which TCP copies the payload. */
static struct page *zeros;

static void make_ready(struct pumped *pumped)
{
	struct client *client = pumped->client;

	spin_lock_bh(&client->lock);
	if (list_empty(&pumped->ready))
		list_add_tail(&pumped->ready, &client->ready);
	spin_unlock_bh(&client->lock);
	wake_up(&client->has_work);
}

static void on_data_ready(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data)
		make_ready(sk->sk_user_data);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* Like sk_stream_write_space: wakes the writer only when a third of the buffer is free and the unsent data is below
 * half of net.ipv4.tcp_notsent_lowat.
 */
static void on_write_space(struct sock *sk)
{
	read_lock_bh(&sk->sk_callback_lock);
	if (sk->sk_user_data && __sk_stream_is_writeable(sk, 1) && sk->sk_socket) {
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		make_ready(sk->sk_user_data);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static u64 next_write_bytes(const struct pumped *pumped)
{
	return pumped->bytes ? min_t(u64, pumped->bytes - pumped->written_bytes, PUMP_WRITE_BYTES)
			     : PUMP_WRITE_BYTES;
}

/* Lets TCP copy the zeros onto themselves, in the processor's cache, and not to new pages. References to the pages
 * (MSG_SPLICE_PAGES) would need no copy, but a segment holds only 17 references. TCP would then split segments that a
 * program's writes fill, and send at other times.
 */
static void copy_to_zeros(struct page_frag *frag)
{
	if (frag->page != zeros) {
		if (frag->page)
			put_page(frag->page);
		get_page(zeros);
		frag->page = zeros;
		frag->size = PUMP_WRITE_BYTES;
	}
	frag->offset = 0;
}

static int send_once(struct pumped *pumped)
{
	struct msghdr message = {.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL};
	size_t bytes = next_write_bytes(pumped);
	struct bio_vec pages;
	int sent;

	bvec_set_page(&pages, zeros, bytes, 0);
	iov_iter_bvec(&message.msg_iter, ITER_SOURCE, &pages, 1, bytes);
	copy_to_zeros(&current->task_frag);
	sent = sock_sendmsg(pumped->socket, &message);
	if (sent > 0)
		pumped->written_bytes += sent;
	return sent;
}

/* Requests the callback before the second check, so that space freed between the two checks is not missed. */
static bool writable(struct sock *sk)
{
	if (sk_stream_is_writeable(sk))
		return true;
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	smp_mb__after_atomic();
	return sk_stream_is_writeable(sk);
}

static void end(struct pumped *pumped);

static void send(struct pumped *pumped)
{
	int sent;

	while (next_write_bytes(pumped)) {
		if (!writable(pumped->socket->sk))
			return;
		sent = send_once(pumped);
		if (sent == -EAGAIN || sent == -EINTR)
			continue;
		if (sent < 0) {
			pumped->error = sent;
			return;
		}
	}
	kernel_sock_shutdown(pumped->socket, SHUT_WR);
	end(pumped);
}

static void receive(struct pumped *pumped)
{
	struct msghdr message = {.msg_flags = MSG_DONTWAIT | MSG_TRUNC | MSG_NOSIGNAL};
	struct client *client = pumped->client;
	int received;

	iov_iter_kvec(&message.msg_iter, ITER_DEST, NULL, 0, PUMP_READ_BYTES);
	received = sock_recvmsg(pumped->socket, &message, message.msg_flags);
	if (received <= 0)
		return; /* sk_state_change or sk_error_report has notified the program */
	spin_lock_bh(&client->lock);
	pumped->count.bytes += received;
	pumped->count.reads++;
	if (list_empty(&pumped->counted))
		list_add_tail(&pumped->counted, &client->counted);
	spin_unlock_bh(&client->lock);
	wake_up(&client->has_counts);
}

static struct pumped *next_ready(struct client *client)
{
	struct pumped *pumped;

	spin_lock_bh(&client->lock);
	pumped = list_first_entry_or_null(&client->ready, struct pumped, ready);
	if (pumped)
		list_del_init(&pumped->ready);
	spin_unlock_bh(&client->lock);
	return pumped;
}

/* The mutex keeps ioctls from removing a socket while the thread works on it. */
static int work(void *argument)
{
	struct client *client = argument;
	struct pumped *pumped;

	while (!kthread_should_stop()) {
		wait_event_interruptible(client->has_work,
					 !list_empty_careful(&client->ready) || kthread_should_stop());
		mutex_lock(&client->mutex);
		while ((pumped = next_ready(client))) {
			if (pumped->sends)
				send(pumped);
			else
				receive(pumped);
		}
		mutex_unlock(&client->mutex);
	}
	return 0;
}

/* Clamps the congestion window. No socket option does so: TCP_WINDOW_CLAMP bounds the receive window. The congestion
 * window, and with it the pacing rate, would still grow to twice that bound.
 */
static void clamp_window(struct sock *sk, u32 segments)
{
	struct tcp_sock *tp = tcp_sk(sk);

	lock_sock(sk);
	tp->snd_cwnd_clamp = min_t(u32, tp->snd_cwnd_clamp, segments);
	tcp_snd_cwnd_set(tp, min_t(u32, tcp_snd_cwnd(tp), segments));
	release_sock(sk);
}

static int begin(struct client *client, int fd, bool sends, u64 bytes, u32 id)
{
	struct pumped *pumped = kzalloc(sizeof(*pumped), GFP_KERNEL);
	struct sock *sk;
	int error = 0;

	if (!pumped)
		return -ENOMEM;
	pumped->socket = sockfd_lookup(fd, &error);
	if (!pumped->socket)
		goto free;
	sk = pumped->socket->sk;
	error = -EINVAL;
	if (sk->sk_type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP)
		goto put;
	pumped->client = client;
	pumped->sends = sends;
	pumped->bytes = bytes;
	pumped->count.id = id;
	INIT_LIST_HEAD(&pumped->ready);
	INIT_LIST_HEAD(&pumped->counted);
	error = -EBUSY;
	write_lock_bh(&sk->sk_callback_lock);
	if (!sk->sk_user_data) {
		if (sends && tcp_sk(sk)->write_seq == tcp_sk(sk)->snd_una && !tcp_sk(sk)->bytes_sent)
			WRITE_ONCE(sk->sk_mark, PUMP_ZEROS_MARK);
		pumped->data_ready = sk->sk_data_ready;
		pumped->write_space = sk->sk_write_space;
		sk->sk_user_data = pumped;
		if (sends)
			sk->sk_write_space = on_write_space;
		else
			sk->sk_data_ready = on_data_ready;
		error = 0;
	}
	write_unlock_bh(&sk->sk_callback_lock);
	if (error)
		goto put;
	spin_lock_bh(&client->lock);
	list_add_tail(&pumped->node, &client->sockets);
	spin_unlock_bh(&client->lock);
	make_ready(pumped);
	return 0;
put:
	sockfd_put(pumped->socket);
free:
	kfree(pumped);
	return error;
}

/* Call with the mutex held. */
static void end(struct pumped *pumped)
{
	struct client *client = pumped->client;
	struct sock *sk = pumped->socket->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = pumped->data_ready;
	sk->sk_write_space = pumped->write_space;
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	spin_lock_bh(&client->lock);
	list_del(&pumped->node);
	list_del(&pumped->ready);
	list_del(&pumped->counted);
	spin_unlock_bh(&client->lock);
	sockfd_put(pumped->socket);
	kfree(pumped);
}

static bool is_pumped(const struct sock *sk)
{
	return sk->sk_write_space == on_write_space || sk->sk_data_ready == on_data_ready;
}

static struct pumped *find(struct client *client, int fd)
{
	int error;
	struct socket *socket = sockfd_lookup(fd, &error);
	struct pumped *pumped;

	if (!socket)
		return NULL;
	pumped = socket->sk->sk_user_data;
	if (!is_pumped(socket->sk) || pumped->client != client)
		pumped = NULL;
	sockfd_put(socket);
	return pumped;
}

static int begin_sending(struct client *client, const struct pump_send *send)
{
	int error = begin(client, send->fd, true, send->bytes, 0);
	struct socket *socket;

	if (error || !send->window_segments)
		return error;
	socket = sockfd_lookup(send->fd, &error);
	if (!socket)
		return error;
	clamp_window(socket->sk, send->window_segments);
	sockfd_put(socket);
	return 0;
}

static int stop(struct client *client, struct pump_stop *stop)
{
	struct pumped *pumped = find(client, stop->fd);

	if (!pumped)
		return -ENOENT;
	stop->written_bytes = pumped->written_bytes;
	stop->error = pumped->error;
	end(pumped);
	return 0;
}

static bool next_count(struct client *client, struct pump_count *count)
{
	struct pumped *pumped;

	spin_lock_bh(&client->lock);
	pumped = list_first_entry_or_null(&client->counted, struct pumped, counted);
	if (pumped) {
		*count = pumped->count;
		pumped->count.bytes = pumped->count.reads = 0;
		list_del_init(&pumped->counted);
	}
	spin_unlock_bh(&client->lock);
	return pumped;
}

static int counts(struct client *client, struct pump_counts *counts)
{
	struct pump_count __user *to = u64_to_user_ptr(counts->counts);
	struct pump_count count;

	for (counts->count = 0; counts->count < counts->capacity && next_count(client, &count);
	     counts->count++)
		if (copy_to_user(to + counts->count, &count, sizeof(count)))
			return -EFAULT;
	return 0;
}

static long answer(struct client *client, unsigned int request, void __user *argument)
{
	union {
		struct pump_send send;
		struct pump_stop stop;
		struct pump_discard discard;
		struct pump_counts counts;
	} asked;
	long error;

	if (_IOC_SIZE(request) > sizeof(asked))
		return -ENOTTY;
	if (copy_from_user(&asked, argument, _IOC_SIZE(request)))
		return -EFAULT;
	switch (request) {
	case PUMP_SEND:
		return begin_sending(client, &asked.send);
	case PUMP_DISCARD:
		return begin(client, asked.discard.fd, false, 0, asked.discard.id);
	case PUMP_STOP:
		error = stop(client, &asked.stop);
		break;
	case PUMP_COUNTS:
		error = counts(client, &asked.counts);
		break;
	default:
		return -ENOTTY;
	}
	if (!error && copy_to_user(argument, &asked, _IOC_SIZE(request)))
		error = -EFAULT;
	return error;
}

static long control(struct file *file, unsigned int request, unsigned long argument)
{
	struct client *client = file->private_data;
	long result;

	mutex_lock(&client->mutex);
	result = answer(client, request, (void __user *)argument);
	mutex_unlock(&client->mutex);
	return result;
}

static __poll_t poll(struct file *file, poll_table *table)
{
	struct client *client = file->private_data;

	poll_wait(file, &client->has_counts, table);
	return list_empty_careful(&client->counted) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static int open(struct inode *inode, struct file *file)
{
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);
	int error;

	if (!client)
		return -ENOMEM;
	spin_lock_init(&client->lock);
	mutex_init(&client->mutex);
	INIT_LIST_HEAD(&client->sockets);
	INIT_LIST_HEAD(&client->ready);
	INIT_LIST_HEAD(&client->counted);
	init_waitqueue_head(&client->has_work);
	init_waitqueue_head(&client->has_counts);
	client->thread = kthread_run(work, client, "bufferscope-traffic");
	if (IS_ERR(client->thread)) {
		error = PTR_ERR(client->thread);
		kfree(client);
		return error;
	}
	file->private_data = client;
	return stream_open(inode, file);
}

static int release(struct inode *inode, struct file *file)
{
	struct client *client = file->private_data;
	struct pumped *pumped, *next;

	kthread_stop(client->thread);
	mutex_lock(&client->mutex);
	list_for_each_entry_safe(pumped, next, &client->sockets, node) end(pumped);
	mutex_unlock(&client->mutex);
	kfree(client);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open,
	.release = release,
	.unlocked_ioctl = control,
	.poll = poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "bufferscope-traffic",
	.fops = &operations,
	.mode = 0600,
};

static int __init start(void)
{
	int error;

	if (!enabled)
		return 0;
	zeros = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP, get_order(PUMP_WRITE_BYTES));
	if (!zeros)
		return -ENOMEM;
	error = misc_register(&device);
	if (error)
		pr_err("creating /dev/%s: %pe\n", device.name, ERR_PTR(error));
	return error;
}

module_init(start);

MODULE_DESCRIPTION("Sends and receives for the traffic programs of bufferscope");
MODULE_LICENSE("Dual MIT/GPL");
