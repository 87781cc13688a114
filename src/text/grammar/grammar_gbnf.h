/* grammar_gbnf.h - reads grammars in GBNF, the notation of llama.cpp.
 *
 * Rules `name ::= ...` with literals, classes [a-z] and [^a-z], `.`, groups, alternatives and the
 * repetitions * + ? {m} {m,} {m,n}; # begins a comment.  The rule `root` is the start.
 *
 * Thread:    pure.
 * Failure:   of the tree; messages begin with the line and column. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_GBNF_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_GBNF_H

#include <stddef.h>
#include <stdint.h>

struct grammar_tree;

/* Adds the rules; returns the number of `root`. */
uint32_t grammar_gbnf_read(struct grammar_tree *t, const char *p, size_t n);

#endif
