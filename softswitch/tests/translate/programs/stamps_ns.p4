/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The same stamps for a program that asks for ns: its metadata has the field that the soft switch sets to 1.
 */
#define STATED_UNIT bit<16> ns_per_tick;
#define NS_PER_TICK meta.ns_per_tick
#include "stamps.p4"
