/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * <stddef.h> for the switch core inside a kernel: NULL, offsetof, size_t.
 */
#ifndef BUFFERSCOPE_STDDEF_H
#define BUFFERSCOPE_STDDEF_H

#include <linux/stddef.h>
#include <linux/types.h>

#endif
