/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * <stdarg.h> for the switch core inside a kernel.
 */
#ifndef BUFFERSCOPE_STDARG_H
#define BUFFERSCOPE_STDARG_H

#include <linux/stdarg.h>

#endif
