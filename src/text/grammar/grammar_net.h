/* grammar_net.h - a grammar compiled to a network of states: one automaton over bytes for each
 * rule, whose edges may call other rules.  grammar_mask.h runs it.
 *
 * Every remaining state can reach the end of its rule, so an accepted prefix can always be
 * completed.
 *
 * Thread:    immutable after compile: any.
 * Ownership: compile gives the network to the caller, destroy takes it back (NULL is fine).
 * Failure:   SHOAL_EINVAL: left recursion, or no text matches; the message names the rule.
 *            SHOAL_ELIMIT: too many states.  *out is NULL then. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_NET_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct grammar_tree;

#define GRAMMAR_NET_MAX_STATES (1u << 20)

enum grammar_net_kind {
    GRAMMAR_NET_BYTES, /* one byte from lo to hi */
    GRAMMAR_NET_TEXT,  /* max bytes of the network's texts, from min on; its state's only edge */
    GRAMMAR_NET_EMPTY, /* nothing */
    GRAMMAR_NET_CALL,  /* a text of rule */
    GRAMMAR_NET_COUNT, /* min to max texts of rule; max UINT32_MAX: any number */
};

struct grammar_net_edge {
    uint8_t kind, lo, hi;
    uint32_t to, rule, min, max;
};

struct grammar_net_state {
    uint32_t edges, n_edges; /* first, how many */
    bool final;              /* of its rule */
    bool counts;             /* it has one edge, of kind COUNT */
    bool reads;              /* it has edges of kind BYTES or TEXT */
    bool text;               /* it has one edge, of kind TEXT */
};

struct grammar_net {
    struct grammar_net_state *states;
    struct grammar_net_edge *edges;
    uint32_t *starts; /* state of each rule */
    uint8_t *texts;   /* what edges of kind TEXT read */
    uint32_t n_states, n_edges, n_rules, n_text_bytes;
    uint32_t root; /* rule */
};

SHOAL_MUST_CHECK int grammar_net_compile(struct grammar_net **out, const struct grammar_tree *t,
                                         uint32_t root, struct err *e);
void grammar_net_destroy(struct grammar_net *net);
size_t grammar_net_bytes(const struct grammar_net *net); /* memory in use */

#endif
