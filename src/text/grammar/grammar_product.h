/* grammar_product.h - the texts that several regular expressions match at once, or do not match: a
 * pattern and a format, a length and both, keys that match no pattern of an object.
 *
 * The expressions run side by side, one character at a time, as one deterministic automaton, which
 * becomes rules of the tree.
 *
 * Thread:    pure.
 * Failure:   SHOAL_ELIMIT: the automaton would be too large.  It is not recorded in the tree: the
 *            caller knows which keyword to name.  Other failures are. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_PRODUCT_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct grammar_tree;

#define GRAMMAR_PRODUCT_MAX_PARTS 64u

struct grammar_product_part {
    uint32_t node; /* over code points: no rules, no escapes of JSON */
    bool without;  /* texts must not match it */
};

struct grammar_product {
    struct grammar_product_part parts[GRAMMAR_PRODUCT_MAX_PARTS]; /* at least one is not without */
    uint32_t n;
    uint32_t min, max; /* characters; max GRAMMAR_TREE_UNBOUNDED: any number */
    unsigned flags;    /* GRAMMAR_REGEX_JSON, GRAMMAR_REGEX_PLAIN: how characters are written */
};

/* SHOAL_ELIMIT: there is no room for another part. */
SHOAL_MUST_CHECK int grammar_product_add(struct grammar_product *p, uint32_t node, bool without);
/* The node of those texts; one that matches nothing if there are none. */
SHOAL_MUST_CHECK int grammar_product_build(struct grammar_tree *t, const struct grammar_product *p,
                                           uint32_t *node);

#endif
