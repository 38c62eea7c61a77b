/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Sizes of tables and arrays, with their reasons, and the number of the mirror session.
 */
#ifndef SHARED_SIZES_P4
#define SHARED_SIZES_P4

/* A port number has 9 bits on every target: an array over ports covers them all, so no index is out of range. */
const bit<32> PORTS = 512;

/* Buckets of the depth histogram: depth_buckets.def lists them. */
const bit<32> DEPTH_BUCKETS = 128;
typedef bit<7> depth_bucket_t;

/* One entry per host; testbeds have tens of hosts. */
const bit<32> HOSTS = 1024;

/* The mirror session that sends copies to the collector's port. */
#define POSTCARD_MIRROR_SESSION 1

#endif
