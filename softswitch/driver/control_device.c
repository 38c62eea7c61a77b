// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/bufferscope-switch: a write is one request of docs/control-protocol.md; the next reads return its reply. An
 * open file is one client. A new request discards the unread rest of the previous reply.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "switch.h"

struct client {
	struct bsw_switch *owner;
	struct mutex mutex; /* protects all fields below; serializes this client's requests */
	size_t reply_bytes;
	size_t read_bytes; /* of the reply, so far */
	char request[EXECUTOR_REQUEST_BYTES + 2];
	char reply[EXECUTOR_REPLY_BYTES];
};

static struct bsw_switch *the_switch;

static int open(struct inode *inode, struct file *file)
{
	struct client *client;

	if (!the_switch->executor.core)
		return -ENODEV;
	client = kvmalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return -ENOMEM;
	client->owner = the_switch;
	client->reply_bytes = client->read_bytes = 0;
	mutex_init(&client->mutex);
	file->private_data = client;
	return stream_open(inode, file);
}

static int release(struct inode *inode, struct file *file)
{
	kvfree(file->private_data);
	return 0;
}

/* Processes all events up to now first, so a setting of the request affects later events only. */
static void answer(struct client *client, size_t request_bytes)
{
	struct bsw_switch *owner = client->owner;

	spin_lock_bh(&owner->lock);
	bsw_schedule(owner, ktime_get_ns());
	client->reply_bytes = executor_answer(&owner->executor, client->request, request_bytes, client->reply,
					      sizeof(client->reply));
	spin_unlock_bh(&owner->lock);
	client->read_bytes = 0;
}

static ssize_t write(struct file *file, const char __user *from, size_t bytes, loff_t *position)
{
	struct client *client = file->private_data;
	size_t taken = min_t(size_t, bytes,
			     EXECUTOR_REQUEST_BYTES + 1); /* the extra byte marks a request as too long */
	ssize_t result = bytes;

	if (mutex_lock_interruptible(&client->mutex))
		return -ERESTARTSYS;
	if (copy_from_user(client->request, from, taken)) {
		result = -EFAULT;
	} else if (bytes) {
		client->request[taken] = 0;
		answer(client, taken);
	}
	mutex_unlock(&client->mutex);
	return result;
}

static ssize_t read(struct file *file, char __user *to, size_t bytes, loff_t *position)
{
	struct client *client = file->private_data;
	ssize_t result;

	if (mutex_lock_interruptible(&client->mutex))
		return -ERESTARTSYS;
	result = min_t(size_t, bytes, client->reply_bytes - client->read_bytes);
	if (copy_to_user(to, client->reply + client->read_bytes, result))
		result = -EFAULT;
	else
		client->read_bytes += result;
	mutex_unlock(&client->mutex);
	return result;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open,
	.release = release,
	.write = write,
	.read = read,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "bufferscope-switch",
	.fops = &operations,
	.mode = 0600,
};

int bsw_control_create(struct bsw_switch *owner)
{
	int error;

	the_switch = owner;
	error = misc_register(&device);
	if (error)
		pr_err("creating /dev/%s: %pe: the switch cannot be configured\n", device.name,
		       ERR_PTR(error));
	return error;
}
