/* grammar_mask.h - which tokens of a vocabulary may follow a text under a grammar.
 *
 * A place is a number for a parser state: a set of stacks of states, stored once. Transitions
 * between places and the allowed tokens of each are computed on first use, and cached.
 *
 * The set of a place is assembled from parts. A part belongs to one state of a rule and records
 * which tokens stay inside the rule, whatever its caller, and where in the vocabulary trie the rule
 * may end; only tokens beyond such an end depend on the caller. So the text of a JSON string, for
 * example, is matched with the whole vocabulary once for all strings of a schema.
 *
 * Thread:    belongs to one thread at a time; the network and the trie are shared.
 * Ownership: borrows network and trie, which must outlive it.  Sets are borrowed until the next
 *            grammar_mask_trim.
 * Failure:   SHOAL_ENOMEM; SHOAL_ELIMIT from create: the grammar is so ambiguous that the stacks
 *            of its beginning do not fit.  Texts that need too many later are not allowed. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_MASK_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct grammar_net;
struct vocab_trie;
struct grammar_mask;

#define GRAMMAR_MASK_DEAD 0u /* the place for texts that the grammar rejects */

struct grammar_mask_set {
    const uint64_t *bits; /* token t: bit t % 64 of word t / 64 */
    uint32_t n;           /* how many are set */
};

SHOAL_MUST_CHECK int grammar_mask_create(struct grammar_mask **out, const struct grammar_net *net,
                                         const struct vocab_trie *vocab, struct err *e);
void grammar_mask_destroy(struct grammar_mask *m);

/* The place before any text. */
SHOAL_MUST_CHECK int grammar_mask_start(struct grammar_mask *m, uint32_t *place);
/* The place after n more bytes; GRAMMAR_MASK_DEAD if the grammar does not allow them. */
SHOAL_MUST_CHECK int grammar_mask_step(struct grammar_mask *m, uint32_t *place, const void *bytes,
                                       size_t n);
/* The same for a token; skip: leading bytes of its text that do not count (a space that is not
 * shown).
 */
SHOAL_MUST_CHECK int grammar_mask_take(struct grammar_mask *m, uint32_t *place, int32_t token,
                                       uint32_t skip);
/* The text may end here. */
bool grammar_mask_complete(const struct grammar_mask *m, uint32_t place);
/* The text must end here: nothing can follow. */
bool grammar_mask_over(const struct grammar_mask *m, uint32_t place);
/* Tokens that may follow, including end tokens if the text may end here. lead: a leading space of a
 * token is not shown, so it does not count. */
SHOAL_MUST_CHECK int grammar_mask_allowed(struct grammar_mask *m, uint32_t place, bool lead,
                                          struct grammar_mask_set *out);
/* If only one text can follow, and every allowed token is a prefix of it: the longest of them,
 * or the lowest id among several with the same text. -1: there is a choice. Depends only on the
 * place. */
SHOAL_MUST_CHECK int grammar_mask_only(struct grammar_mask *m, uint32_t place, int32_t *token);
/* The only text that can follow, up to n bytes; returns how many.  Stops where the text may end. */
size_t grammar_mask_forced(struct grammar_mask *m, uint32_t place, char *out, size_t n);

/* Drops everything if it takes more than max_bytes: then places are invalid, and the result is
 * true.
 */
bool grammar_mask_trim(struct grammar_mask *m, size_t max_bytes);
size_t grammar_mask_bytes(const struct grammar_mask *m);

#endif
