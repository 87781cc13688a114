/* same_ask.h - decides whether two prompts ask the same question, so that one answer serves both.
 *
 * The vectors of "turn on the light" and "turn off the light" are close, so this decides. It is
 * strict: apart from filler words and synonyms (wording.h), both must have the same words: the same
 * numbers in the same order, the same negations, names, questions, owners, tense, singular or
 * plural, and prepositions before a number. When in doubt, they count as different.
 *
 * Thread: pure functions. */
#ifndef SHOAL_KNOWLEDGE_SAME_ASK_H
#define SHOAL_KNOWLEDGE_SAME_ASK_H

#include <stdbool.h>
#include <stddef.h>

/* *why: what differs, for people; a constant.  May be NULL. */
bool same_ask(const char *a, size_t n_a, const char *b, size_t n_b, const char **why);

#endif
