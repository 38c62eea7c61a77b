// SPDX-License-Identifier: MIT
// Loads and registers a congestion control. The name is written into the object's image before libbpf opens the image,
// because a libbpf older than that of Linux 6.9 offers no other access to a struct_ops variable. The registration is a
// BPF link, which ends with its file descriptor. Without a link the registration would outlive this process.
#include "algorithm.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../lib/report.h"
#include "image.h"
#include "libbpf_words.h"

/* From newer versions of linux/bpf.h. */
enum { STRUCT_OPS_LINK_FLAG = 1 << 13, STRUCT_OPS_ATTACH = 44 };
enum { NOT_SUPPORTED = 524 }; /* the kernel's ENOTSUPP, which user space has no name for */

static struct bpf_map *struct_ops_map(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS) return map;
	return NULL;
}

/* Sets the variable that congestion_as_bpf.h draws from; an object without draws has none. */
static void set_seed(struct bpf_object *object, uint64_t seed)
{
	uint64_t *variable = image_variable(object, "random_seed", sizeof(*variable));

	if (variable)
		*variable = seed;
}

static int explain(const struct algorithm *algorithm, const char *action, int err)
{
	char words[WORDS_BYTES];

	libbpf_last_words(words, sizeof(words));
	complain("%s: %s: %s", algorithm->path, action, *words ? words : strerror(-err));
	return err;
}

/* Stores the functions in the kernel, which checks them. libbpf 1.2 and later also registers them here. */
static int store(struct algorithm *algorithm)
{
	algorithm->value = bpf_map__attach_struct_ops(struct_ops_map(algorithm->object));
	if (algorithm->value)
		return 0;
	if (errno == EINVAL) {
		complain("%s: the kernel refuses it: give it ssthresh, undo_cwnd, and cong_avoid or "
			 "cong_control",
			 algorithm->path);
		return -EINVAL;
	}
	return explain(algorithm, "the kernel refuses its functions", -errno);
}

int algorithm_load(struct algorithm *algorithm, uint64_t seed)
{
	struct image image = {0};
	int err = image_read(&image, algorithm->path);

	libbpf_listen();
	if (!err)
		err = image_set_name(&image, algorithm->path, algorithm->name);
	if (err)
		goto out;
	algorithm->object = bpf_object__open_mem(image.bytes, image.size, NULL);
	if (!algorithm->object) {
		err = explain(algorithm, "libbpf cannot read it", -errno);
		goto out;
	}
	bpf_map__set_map_flags(struct_ops_map(algorithm->object), STRUCT_OPS_LINK_FLAG);
	set_seed(algorithm->object, seed);
	err = bpf_object__load(algorithm->object);
	if (err == -EPERM)
		complain("%s: loading it: not permitted: run as root", algorithm->path);
	else if (err == -E2BIG)
		complain("%s: the kernel refuses it: its verifier gave up after a million instructions: give "
			 "each loop a "
			 "constant bound",
			 algorithm->path);
	else if (err == -NOT_SUPPORTED)
		explain(algorithm, "the kernel refuses it: a CALLBACK is not a member of CONGESTION_CONTROL",
			err);
	else if (err)
		explain(algorithm, "the kernel refuses it", err);
	else
		err = store(algorithm);
out:
	image_free(&image);
	return err;
}

int algorithm_register(struct algorithm *algorithm)
{
	struct bpf_map *map = struct_ops_map(algorithm->object);
	union bpf_attr attributes = {0};

	if (libbpf_major_version() == 1 &&
	    libbpf_minor_version() < 2) { /* since 1.2, store() has made the link */
		attributes.link_create.prog_fd = (uint32_t)bpf_map__fd(map); /* union with map_fd */
		attributes.link_create.attach_type = STRUCT_OPS_ATTACH;
		algorithm->link_fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
	}
	if (algorithm->link_fd < 0) {
		int err = -errno;

		algorithm->link_fd = 0;
		complain("%s: registering it as %s: %s%s", algorithm->path, algorithm->name, strerror(-err),
			 err == -EEXIST ? ": another congestion control has this name" : "");
		return err;
	}
	return 0;
}

/* A map with BPF_F_LINK is registered by its link only. libbpf before 1.2 cannot delete such a map's value, so the
 * value is disconnected, and ends with the object. Since libbpf 1.2 the value is the link, and ends with this process.
 */
void algorithm_release(struct algorithm *algorithm)
{
	if (algorithm->link_fd)
		close(algorithm->link_fd);
	if (algorithm->value) {
		bpf_link__disconnect(algorithm->value);
		bpf_link__destroy(algorithm->value);
	}
	bpf_object__close(algorithm->object);
}
