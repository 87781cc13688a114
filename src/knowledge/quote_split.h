/* quote_split.h - the sentences of a passage, as they can be quoted.
 *
 * Lines of documents are often wrapped: a line break ends a sentence only where a paragraph, a list
 * item or a short line does. Lines of a table of contents are no sentences.
 *
 * Thread:    pure functions.
 * Ownership: plain data; texts are borrowed. */
#ifndef SHOAL_KNOWLEDGE_QUOTE_SPLIT_H
#define SHOAL_KNOWLEDGE_QUOTE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quote_span {
    size_t at, n; /* in the passage, without blanks around it */
};

/* Returns how many; at most max. */
uint32_t quote_split(struct quote_span *out, uint32_t max, const char *text, size_t n);
/* "2.3 Settings . . . . . . 14": a title with dots and the number of a page. */
bool quote_is_contents(const char *text, size_t n);

#endif
