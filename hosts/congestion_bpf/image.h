/* SPDX-License-Identifier: MIT
 * A BPF object's image in memory: an ELF file of 64 bits that clang wrote on this machine.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stddef.h>

struct bpf_object;

struct image {
	char *bytes;
	size_t size;
};

/* Each returns 0, or -errno after one line. */
int image_read(struct image *image, const char *path);
/* Writes `name` into the only struct tcp_congestion_ops of the image. */
int image_set_name(struct image *image, const char *path, const char *name);
void image_free(struct image *image);

/* The initial value of a global constant of an object that is not loaded yet; NULL if there is no such constant. */
void *image_variable(struct bpf_object *object, const char *name, size_t bytes);

#endif
