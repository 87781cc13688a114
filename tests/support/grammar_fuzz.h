/* grammar_fuzz.h - any bytes as a constraint's text; what compiles is walked at random.  A grammar
 * never leads into a dead end: where a text may not end, a byte can follow.
 *
 * Thread:    one. */
#ifndef SHOAL_TEST_GRAMMAR_FUZZ_H
#define SHOAL_TEST_GRAMMAR_FUZZ_H

#include <stdlib.h>

#include "base/hash.h"
#include "support/grammar_walk.h"
#include "support/fuzz_note.h"

#define GRAMMAR_FUZZ_STEPS 64u

static inline int grammar_fuzz(enum shoal_constraint kind, const uint8_t *data, size_t size)
{
    struct grammar_walk w;
    struct err e = {0};
    uint32_t place = GRAMMAR_MASK_DEAD, n = 0;
    uint8_t next[256];
    int rc = size > 4096 ? SHOAL_ELIMIT : grammar_walk_open(&w, kind, (const char *)data, size, &e);
    if (size > 4096)
        return 0;
    if (rc < 0 && (e.code != rc || !e.msg[0])) /* a failure says why */
        abort();
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc == 0)
        rc = grammar_mask_start(w.mask, &place);
    if (rc == 0 && place == GRAMMAR_MASK_DEAD)
        abort();
    for (uint32_t i = 0; rc == 0 && i < GRAMMAR_FUZZ_STEPS; i++) {
        rc = grammar_walk_next(&w, place, next, &n);
        if (rc < 0)
            break;
        if (n == 0 && !grammar_mask_complete(w.mask, place))
            abort();
        FUZZ_NOTE(" %u%s:", n, grammar_mask_complete(w.mask, place) ? "." : "");
        FUZZ_NOTE_BYTES(next, n);
        if ((n == 0) != grammar_mask_over(w.mask, place))
            abort();
        if (n == 0)
            break;
        rc = grammar_mask_step(w.mask, &place, &next[hash_mix(size * 131 + i) % n], 1);
    }
    grammar_walk_close(&w);
    return 0;
}

#endif
