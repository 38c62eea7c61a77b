/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * tna_pipelines.p4 as Tofino 2 has it.
 */
#define __TARGET_TOFINO__ 2
#include "tna_pipelines.p4"
