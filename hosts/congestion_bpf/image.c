// SPDX-License-Identifier: MIT
// Writes the algorithm's name into an object's struct tcp_congestion_ops. BTF gives the variable's offset in its
// section, the ELF section headers give the section.
#include "image.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/report.h"
#include "algorithm.h"

#define SECTION	      ".struct_ops"
#define LINK_SECTION  ".struct_ops.link"
#define VARIABLE_TYPE "tcp_congestion_ops"

enum { MOST_IMAGE_BYTES = 64 << 20 };

/* libbpf before 1.2 does not know sections named LINK_SECTION. All congestion controls are registered by links, so both
 * section names mean the same. The longer name is truncated wherever it occurs, also behind ".rel".
 */
static void shorten_section_name(struct image *image)
{
	const size_t length = sizeof(LINK_SECTION) - 1, kept = sizeof(SECTION) - 1;

	for (size_t at = 0; at + length < image->size; at++)
		if (!memcmp(image->bytes + at, LINK_SECTION, length + 1))
			image->bytes[at + kept] = '\0';
}

int image_read(struct image *image, const char *path)
{
	FILE *file = fopen(path, "re");
	long size = -1;
	int err = 0;

	if (file && !fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size > MOST_IMAGE_BYTES) {
		errno = EFBIG;
		size = -1;
	}
	image->bytes = size > 0 ? malloc((size_t)size) : NULL;
	image->size = size > 0 ? (size_t)size : 0;
	if (!image->bytes || fseek(file, 0, SEEK_SET) ||
	    fread(image->bytes, 1, image->size, file) != image->size) {
		err = errno ? -errno : -ENOEXEC;
		complain("%s: reading it: %s", path, strerror(-err));
	} else {
		shorten_section_name(image);
	}
	if (file)
		fclose(file);
	return err;
}

void image_free(struct image *image)
{
	free(image->bytes);
	*image = (struct image){0};
}

/* The bytes of a section, or NULL. Every offset is checked, because the file is not trusted. */
static char *section(const struct image *image, const char *name, size_t *bytes)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)image->bytes;
	const Elf64_Shdr *sections, *names;

	if (image->size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(*sections) ||
	    header->e_shoff % sizeof(uint64_t) || header->e_shoff > image->size ||
	    (image->size - header->e_shoff) / sizeof(*sections) < header->e_shnum ||
	    header->e_shstrndx >= header->e_shnum)
		return NULL;
	sections = (const Elf64_Shdr *)(image->bytes + header->e_shoff);
	names = &sections[header->e_shstrndx];
	if (names->sh_offset > image->size || names->sh_size > image->size - names->sh_offset)
		return NULL;
	for (size_t at = 0; at < header->e_shnum; at++) {
		const Elf64_Shdr *entry = &sections[at];

		if (entry->sh_name >= names->sh_size ||
		    strncmp(image->bytes + names->sh_offset + entry->sh_name, name,
			    names->sh_size - entry->sh_name))
			continue;
		if (entry->sh_type == SHT_NOBITS || entry->sh_offset > image->size ||
		    entry->sh_size > image->size - entry->sh_offset)
			return NULL;
		*bytes = entry->sh_size;
		return image->bytes + entry->sh_offset;
	}
	return NULL;
}

/* The offset of the member `name` in the section; -ENOENT without a variable of the type, -E2BIG with several. */
static int name_offset(const struct btf *btf, size_t *offset)
{
	int section_id = btf__find_by_name_kind(btf, SECTION, BTF_KIND_DATASEC), variables = 0;
	const struct btf_type *type = section_id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)section_id);
	const struct btf_var_secinfo *variable = type ? btf_var_secinfos(type) : NULL;

	for (int at = 0; type && at < btf_vlen(type); at++) {
		const struct btf_type *var = btf__type_by_id(btf, variable[at].type);
		const struct btf_type *is = btf__type_by_id(btf, var->type);
		const struct btf_member *member = btf_members(is);

		if (!btf_is_struct(is) || strcmp(btf__name_by_offset(btf, is->name_off), VARIABLE_TYPE))
			continue;
		variables++;
		for (int field = 0; field < btf_vlen(is); field++)
			if (!strcmp(btf__name_by_offset(btf, member[field].name_off), "name"))
				*offset =
					variable[at].offset + btf_member_bit_offset(is, (uint32_t)field) / 8;
	}
	return variables == 1 ? 0 : variables ? -E2BIG : -ENOENT;
}

int image_set_name(struct image *image, const char *path, const char *name)
{
	size_t bytes = 0, offset = 0;
	char *content = section(image, SECTION, &bytes);
	struct bpf_object *object = content ? bpf_object__open_mem(image->bytes, image->size, NULL) : NULL;
	int err = object && bpf_object__btf(object) ? name_offset(bpf_object__btf(object), &offset) : -ENOENT;

	bpf_object__close(object);
	if (!err && (bytes < ALGORITHM_NAME_BYTES || offset > bytes - ALGORITHM_NAME_BYTES))
		err = -ENOENT;
	if (err)
		complain("%s: has %s struct %s in a section " SECTION
			 "; a congestion control has exactly one (docs/your-congestion-control.md)",
			 path, err == -E2BIG ? "more than one" : "no", VARIABLE_TYPE);
	else
		strncpy(content + offset, name, ALGORITHM_NAME_BYTES);
	return err;
}

void *image_variable(struct bpf_object *object, const char *name, size_t bytes)
{
	const struct btf *btf = bpf_object__btf(object);
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		int id = btf && strstr(bpf_map__name(map), ".rodata")
				 ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC)
				 : -1;
		const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
		const struct btf_var_secinfo *variable = type ? btf_var_secinfos(type) : NULL;
		size_t size = 0;
		char *values = (char *)(uintptr_t)bpf_map__initial_value(map, &size);

		for (int at = 0; values && type && at < btf_vlen(type); at++) {
			const struct btf_type *var = btf__type_by_id(btf, variable[at].type);

			if (!strcmp(btf__name_by_offset(btf, var->name_off), name) &&
			    variable[at].size == bytes && variable[at].offset + bytes <= size)
				return values + variable[at].offset;
		}
	}
	return NULL;
}
