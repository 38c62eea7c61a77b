/* SPDX-License-Identifier: MIT
 * CoDel's law (RFC 8289, section 5), for one packet at a time: the RFC's loop, which drops packets until one may leave,
 * goes on with the next packet, because a packet that is dropped at departure takes no time of the link. All times are
 * those of the RFC: the packet leaves the queue when its transmission starts.
 *
 * Departures from the RFC: 1/sqrt(count), with 32 bits behind the point, is four steps of Newton's method at each change of
 * count (Linux: one): exact to 0.3 % while count grows by ones; too small by 15 % if dropping begins again with 5 after
 * 100, by 53 % with 10 after 1000. The queue behind the packet is that at the end of its transmission.
 * Times are compared modulo 2^48: the clock wraps every 78 hours.
 */
#ifndef AQM_CODEL_P4
#define AQM_CODEL_P4

register<bit<48>>(CODEL_QUEUES) first_above_ns;         // first_above_time; 0: the wait is below target
register<bit<48>>(CODEL_QUEUES) drop_next_ns;
register<bit<32>>(CODEL_QUEUES) drop_count;
register<bit<32>>(CODEL_QUEUES) last_count;
register<bit<32>>(CODEL_QUEUES) inverse_sqrt;           // of drop_count, times 2^32
register<bit<1>>(CODEL_QUEUES) is_dropping;
register<bit<1>>(CODEL_QUEUES) has_dropped;             // the loop goes on: drop_next is to advance

/* The next 1/sqrt(count), from the last one: x * (3 - count * x^2) / 2, four times. */
control Newton(in bit<32> count, inout bit<32> inverse) {
    bit<64> wide;
    action step() { wide = ((((64w3 << 32) - (bit<64>)count * ((wide * wide) >> 32)) >> 2) * wide) >> 31; }
    apply {
        wide = (bit<64>)inverse;
        step(); step(); step(); step();
        inverse = (bit<32>)wide;
    }
}

/* `hit`: this packet is to be dropped, or marked if `marks`. */
control Codel(in bit<32> at, in bit<48> start_ns, in bit<48> wait_ns, in bit<32> left_packets, in bit<32> left_bytes,
              in bit<32> target_ns, in bit<32> interval_ns, in bit<32> maxpacket_bytes, in bit<1> marks,
              out bit<1> hit, out bit<32> count) {
    Newton() newton;
    bit<48> above; bit<48> next; bit<32> last; bit<32> inverse; bit<1> dropping; bit<1> goes_on; bit<1> ok; bit<48> law;
    apply {
        first_above_ns.read(above, at); drop_next_ns.read(next, at); drop_count.read(count, at);
        last_count.read(last, at); inverse_sqrt.read(inverse, at); is_dropping.read(dropping, at);
        has_dropped.read(goes_on, at);
        hit = 0;
        ok = 0;
        if (wait_ns < (bit<48>)target_ns || left_bytes <= maxpacket_bytes) {
            above = 0;
        } else if (above == 0) {
            above = start_ns + (bit<48>)interval_ns;
        } else if (start_ns - above < 48w1 << 47) {
            ok = 1;
        }
        law = (bit<48>)(((bit<64>)interval_ns * (bit<64>)inverse) >> 32);
        if (dropping == 1 && ok == 0) {
            dropping = 0;
        } else if (dropping == 1) {
            if (goes_on == 1) { next = next + law; }
            goes_on = 0;
            if (start_ns - next < 48w1 << 47) {
                hit = 1;
                count = count + 1;
                newton.apply(count, inverse);
                goes_on = 1;
                if (marks == 1) {               // a marked packet leaves: this ends the loop
                    next = next + (bit<48>)(((bit<64>)interval_ns * (bit<64>)inverse) >> 32);
                    goes_on = 0;
                }
            }
        } else if (ok == 1) {
            hit = 1;
            dropping = 1;
            if (count > last + 1 && start_ns - next - ((bit<48>)interval_ns << 4) >= 48w1 << 47) {
                count = count - last;
                newton.apply(count, inverse);
            } else {
                count = 1;
                inverse = 0xffffffff;
            }
            last = count;
            next = start_ns + (bit<48>)(((bit<64>)interval_ns * (bit<64>)inverse) >> 32);
            goes_on = 0;
        }
        if (dropping == 0 || left_packets == 0) {       // the RFC's next dequeue finds an empty queue
            dropping = 0;
            goes_on = 0;
        }
        if (left_packets == 0) { above = 0; }
        first_above_ns.write(at, above); drop_next_ns.write(at, next); drop_count.write(at, count);
        last_count.write(at, last); inverse_sqrt.write(at, inverse); is_dropping.write(at, dropping);
        has_dropped.write(at, goes_on);
        if (dropping == 0) { count = 0; }
    }
}

#endif
