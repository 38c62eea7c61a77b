/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Requests of the control plane that concern a P4 program (docs/control-protocol.md), answered from the descriptions
 * that the translator writes. A request changes nothing until all of it is read and checked.
 */
#ifndef SOFTSWITCH_P4_CONTROL_H
#define SOFTSWITCH_P4_CONTROL_H

#include "p4_state.h"

/* Answers `request` as pipeline_control does; pipeline: the program's struct pipeline. */
size_t p4_control(const struct p4_program_info *program, void *pipeline, const char *request, char *reply,
		  size_t reply_bytes);

#endif
