/* SPDX-License-Identifier: MIT
 * A BPF object's image in memory: a 64-bit ELF file that clang wrote on this machine.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stddef.h>

struct bpf_object;

struct image {
	char *bytes;
	size_t size;
};

/* image_read and image_set_name return 0, or -errno after one line. */
int image_read(struct image *image, const char *path);
/* Writes `name` into the only struct tcp_congestion_ops of the image. */
int image_set_name(struct image *image, const char *path, const char *name);
void image_free(struct image *image);

/* The initial value of the global constant `name` of `bytes` bytes, in an object that is not loaded yet. NULL if the
 * object has no such constant.
 */
void *image_variable(struct bpf_object *object, const char *name, size_t bytes);

#endif
