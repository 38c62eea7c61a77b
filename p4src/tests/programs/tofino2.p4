/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * tna_pipelines.p4 with Tofino 2's stamps of 32 bits.
 */
#define __TARGET_TOFINO__ 2
#include "tna_pipelines.p4"
