/* grammar_branches.h - the branches of an alternative by the text that each begins with.
 *
 * Branches that begin alike can then be built as one path up to where they differ, so that a list
 * of a hundred thousand names is one automaton, and not as many side by side.
 *
 * Thread:    pure.
 * Ownership: init fills the caller's struct, fini frees it, also after a failure.  Borrows from the
 *            tree.
 * Failure:   SHOAL_ENOMEM; SHOAL_ELIMIT: the texts are too long together. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_BRANCHES_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_BRANCHES_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct grammar_tree;
struct grammar_tree_node;

struct grammar_branch {
    const uint8_t *text;  /* n bytes that it begins with */
    const uint32_t *rest; /* nodes that follow */
    uint32_t n, n_rest;
};

struct grammar_branches {
    struct arena arena;
    struct grammar_branch *list; /* by text, then by n_rest */
    uint32_t n;
};

SHOAL_MUST_CHECK int grammar_branches_init(struct grammar_branches *all,
                                           const struct grammar_tree *t,
                                           const struct grammar_tree_node *either);
void grammar_branches_fini(struct grammar_branches *all);

#endif
