/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A histogram of the queue depth that packets met, for each port. The switch itself counts, so a lost postcard
 * leaves no gap in the histogram. The target's names.p4 defines PACKET_COUNTER.
 */
#ifndef SHARED_DEPTH_HISTOGRAM_P4
#define SHARED_DEPTH_HISTOGRAM_P4

#include "sizes.p4"

control DepthHistogram(in bit<9> port, in bit<32> depth) {
    PACKET_COUNTER(PORTS * DEPTH_BUCKETS) depth_histogram;      // cell = port * DEPTH_BUCKETS + bucket
    depth_bucket_t bucket;

    action in_bucket(depth_bucket_t number) {
        bucket = number;
    }

    /* Each bucket is one prefix of the depth. A depth without an entry belongs to the last bucket. */
    table depth_bucket {
        key = { depth: PREFIX; }
        actions = { in_bucket; }
        const default_action = in_bucket((depth_bucket_t)(DEPTH_BUCKETS - 1));
        const entries = {
#define BUCKET(number, lowest, width) (bit<32>)(lowest) &&& ~(bit<32>)((width) - 1) : in_bucket(number);
#define EIGHT_BUCKETS(number, lowest, width) \
            BUCKET(number, lowest, width) \
            BUCKET(number + 1, lowest + width, width) \
            BUCKET(number + 2, lowest + 2 * width, width) \
            BUCKET(number + 3, lowest + 3 * width, width) \
            BUCKET(number + 4, lowest + 4 * width, width) \
            BUCKET(number + 5, lowest + 5 * width, width) \
            BUCKET(number + 6, lowest + 6 * width, width) \
            BUCKET(number + 7, lowest + 7 * width, width)
#include "depth_buckets.def"
        }
    }

    apply {
        depth_bucket.apply();
        depth_histogram.count((counter_index_t)(port ++ bucket));
    }
}

#endif
