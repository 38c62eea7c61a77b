/* SPDX-License-Identifier: MIT
 * One line from the messages of libbpf and of the kernel's verifier: the reason of a failure, with the source's file
 * and line.
 */
#ifndef LIBBPF_WORDS_H
#define LIBBPF_WORDS_H

#include <stddef.h>

enum { WORDS_BYTES = 1024 };

/* Collects libbpf's messages from now on, instead of printing them. */
void libbpf_listen(void);

/* The reason of the last failure; "" if libbpf gave none. */
void libbpf_last_words(char *words, size_t bytes);

#endif
