/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Header stacks: next, last, lastIndex, push, pop, an index that varies, copies of stacks; two loops in the parser.
 */
#include "begin.p4"

header tag_h {
    bit<8> kind;
    bit<24> value;
}

struct headers_t {
    head_h head;
    tag_h[5] tags;
    tag_h[5] others;
}

struct metadata_t {
    bit<16> sum;
    bit<32> last;
}

PARSER {
    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.count) {
            0: accept;
            default: tags;
        }
    }
    state tags {
        packet.extract(hdr.tags.next);
        meta.sum = meta.sum + hdr.tags.last.value[15:0];
        meta.last = meta.last + hdr.tags.lastIndex;
        transition select(hdr.tags.last.kind) {
            0: accept;
            1 .. 9: others;
            0x80 &&& 0x80: tags;
            default: tags;
        }
    }
    state others {
        packet.extract(hdr.others.next);
        verify(hdr.others.last.kind != 0x77, error.NoMatch);
        transition select(hdr.others.last.value) {
            0: accept;
            0x800000 &&& 0x800000: others;
            default: tags;
        }
    }
}

INGRESS {
    apply {
        std.egress_spec = 2;
        hdr.head.result = meta.sum ++ meta.last[7:0] ++ (bit<8>)(bit<1>)hdr.tags[4].isValid();
        hdr.head.number = std.parser_error == error.NoError ? 16w0 : 16w1;
        if (hdr.head.what == 1) {
            hdr.tags.push_front(1);
            hdr.tags[0] = { 0xaa, 0x112233 };
        } else if (hdr.head.what == 2) {
            hdr.others.push_front(3);
        } else if (hdr.head.what == 3) {
            hdr.tags.pop_front(1);
        } else if (hdr.head.what == 4) {
            hdr.tags.pop_front(4);
        } else if (hdr.head.what == 5) {
            hdr.others = hdr.tags;
            hdr.others.pop_front(1);
        } else if (hdr.head.what == 6 && hdr.tags[2].isValid()) {
            hdr.head.count = hdr.head.count & 1;
            hdr.tags[2].value = hdr.tags[hdr.head.count].value;
            hdr.tags[hdr.head.count].kind = 0x55;
            hdr.tags[0].setInvalid();
        } else if (hdr.head.what == 7) {
            hdr.tags.push_front(2);
            hdr.tags.pop_front(1);
            hdr.tags[0] = { 1, 2 };
        }
    }
}

EGRESS {
    apply {
        if (hdr.tags[1].isValid() && hdr.tags[1] == hdr.tags[0]) {
            hdr.tags.pop_front(2);
        }
    }
}

#include "end.p4"
