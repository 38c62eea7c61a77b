/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * tna_pipelines.p4 with Tofino 1's stamps of 18 bits.
 */
#define __TARGET_TOFINO__ 1
#include "tna_pipelines.p4"
