/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * <stdint.h> for the switch core inside a kernel: kernel code is compiled without the compiler's own headers.
 */
#ifndef BUFFERSCOPE_STDINT_H
#define BUFFERSCOPE_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX

#endif
