/* grammar_walk.h - runs a grammar over bytes, without a vocabulary.
 *
 * Thread:    belongs to its caller.
 * Ownership: grammar_walk_open fills the caller's struct, grammar_walk_close frees it. */
#ifndef SHOAL_TEST_GRAMMAR_WALK_H
#define SHOAL_TEST_GRAMMAR_WALK_H

#include "text/grammar/grammar.h"
#include "text/grammar/grammar_mask.h"
#include "text/grammar/grammar_net.h"
#include "text/grammar/vocab_trie.h"

struct grammar_walk {
    struct grammar_net *net;
    struct grammar_mask *mask;
    struct vocab_trie_node root;
    struct vocab_trie vocab; /* without tokens */
};

static inline int grammar_walk_open(struct grammar_walk *w, enum shoal_constraint kind,
                                    const char *text, size_t n, struct err *e)
{
    *w = (struct grammar_walk){.root = {.end = 1, .token = VOCAB_TRIE_NONE}};
    w->vocab.nodes = &w->root;
    w->vocab.n_nodes = 1;
    int rc = grammar_compile(&w->net, kind, text, n, e);
    return rc < 0 ? rc : grammar_mask_create(&w->mask, w->net, &w->vocab, e);
}

static inline void grammar_walk_close(struct grammar_walk *w)
{
    grammar_mask_destroy(w->mask);
    grammar_net_destroy(w->net);
}

/* Bytes that may follow a position: all false where the text must end. */
static inline int grammar_walk_next(struct grammar_walk *w, uint32_t place, uint8_t out[256],
                                    uint32_t *n)
{
    *n = 0;
    for (uint32_t b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        uint32_t to = place;
        int rc = grammar_mask_step(w->mask, &to, &byte, 1);
        if (rc < 0)
            return rc;
        if (to != GRAMMAR_MASK_DEAD)
            out[(*n)++] = byte;
    }
    return 0;
}

#endif
