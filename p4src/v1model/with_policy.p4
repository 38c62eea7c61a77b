/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * bufferscope with a place for a user's policy (own_policy.p4).
 */
#define WITH_POLICY
#include "bufferscope.p4"
