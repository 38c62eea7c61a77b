/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * <stdbool.h> for the switch core inside a kernel: bool, true, false.
 */
#ifndef BUFFERSCOPE_STDBOOL_H
#define BUFFERSCOPE_STDBOOL_H

#include <linux/stddef.h>
#include <linux/types.h>

#endif
