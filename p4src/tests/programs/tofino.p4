/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * tna_pipelines.p4 as Tofino 1 has it: stamps of 18 bits.
 */
#define __TARGET_TOFINO__ 1
#include "tna_pipelines.p4"
