/* deed_text.h - templates of topics, payloads, URLs and arguments: {id}, {ability}, {value},
 * {unit}, {action}.
 *
 * Thread:  pure functions.
 * Failure: false: too long, or an unknown word in braces. */
#ifndef SHOAL_CONFIG_DEED_TEXT_H
#define SHOAL_CONFIG_DEED_TEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct deed_text_facts {
    const char *id, *ability, *value, *unit, *action;
};

/* Encoding of a value: plain; inside a JSON string; inside a URL. */
enum deed_text_form { DEED_TEXT_PLAIN, DEED_TEXT_JSON, DEED_TEXT_URL };

/* Whether every {word} is known; other braces stay unchanged. */
bool deed_text_ok(const char *pattern);
/* Appends; failures stick in out->rc. */
void deed_text_fill(struct buf *out, const char *pattern, const struct deed_text_facts *f,
                    enum deed_text_form form);
/* The filter that covers all topics of a pattern: "+" for {id} and {ability}, which must be whole
 * levels.  False: they are not, or there is another word. */
bool deed_text_filter(char *out, size_t cap, const char *pattern);
/* The values of {id} and {ability} in a topic of the pattern; p NULL where the pattern has none.
 * False: the topic does not match. */
bool deed_text_match(const char *pattern, const char *topic, struct str *id, struct str *ability);
/* Whether name fits a pattern with "*" for any characters. */
bool deed_text_glob(const char *pattern, const char *name);

#endif
