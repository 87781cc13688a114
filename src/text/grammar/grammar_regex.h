/* grammar_regex.h - reads regular expressions as JavaScript writes them (flag u): classes, groups,
 * alternatives, repetitions, anchors at the ends.
 *
 * Not supported, since they are not regular or need to look elsewhere: look-around, back
 * references, word boundaries, anchors in the middle, Unicode properties.  Each is refused by name.
 *
 * Thread:    pure.
 * Failure:   of the tree; messages say at which character. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_REGEX_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grammar_tree;

enum grammar_regex_flags {
    GRAMMAR_REGEX_JSON = 1 << 0,   /* the text is inside a JSON string: it is escaped */
    GRAMMAR_REGEX_SEARCH = 1 << 1, /* it matches anywhere in the text, unless it is anchored */
    GRAMMAR_REGEX_PLAIN =
        1 << 2, /* with JSON: no escapes; characters that need one are not allowed */
};

uint32_t grammar_regex_read(struct grammar_tree *t, const char *p, size_t n, unsigned flags);
/* The position after the group that begins at p. */
const char *grammar_regex_group_end(const char *p, const char *end);
/* A class of characters in JSON string encoding: node is of kind CLASS. */
uint32_t grammar_regex_json_class(struct grammar_tree *t, uint32_t node, unsigned flags);

#endif
