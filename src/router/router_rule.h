/* router_rule.h - rules on the properties of a request: its path, headers, client, language, size,
 * text and JSON fields.
 *
 * Thread:    immutable once compiled; matching may run on any thread.
 * Ownership: init copies; fini frees.
 * Failure:   SHOAL_EINVAL with the reason: a bad regular expression, a condition that is missing. A
 *            text that exceeds the matching limits does not match. */
#ifndef SHOAL_ROUTER_ROUTER_RULE_H
#define SHOAL_ROUTER_ROUTER_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ROUTER_MAX_MATCH_BYTES ((size_t)64 << 10) /* limit of a text to match */

enum router_field {
    ROUTER_FIELD_TEXT,
    ROUTER_FIELD_PATH,
    ROUTER_FIELD_HEADER,
    ROUTER_FIELD_KEY, /* name of the client's key */
    ROUTER_FIELD_LANGUAGE,
    ROUTER_FIELD_KIND, /* "generate", "classify", ... */
    ROUTER_FIELD_SIZE, /* bytes of text */
    ROUTER_FIELD_JSON, /* of the body: "metadata.tier" */
};
#define ROUTER_FIELDS "text|path|header|key|language|kind|size|json" /* in the same order */

/* A header or JSON field that came with a request. */
struct router_tag {
    enum router_field field;
    const char *name, *value;
};

struct router_facts {
    const char *path, *client, *language, *kind; /* "": not known */
    const char *text;
    size_t text_bytes;
    const struct router_tag *tags;
    uint32_t n_tags;
};

struct router_regex;

struct router_rule {
    enum router_field field;
    char *name; /* of a header or JSON field */
    char **is;  /* [n_is]: one of these values */
    uint32_t n_is;
    struct router_regex *regex; /* or this expression */
    bool above_given, below_given;
    double above, below; /* or a number in this range, exclusive */
    bool negate;         /* when it does not match */
    char **use;          /* [n_use]: models that remain */
    uint32_t n_use;
};

/* pattern: PCRE, UTF-8. */
SHOAL_MUST_CHECK int router_regex_create(struct router_regex **out, const char *pattern,
                                         struct err *e);
void router_regex_destroy(struct router_regex *x); /* NULL is fine */
bool router_regex_matches(const struct router_regex *x, const char *text, size_t n);

/* Whether the rule's parts are consistent. */
SHOAL_MUST_CHECK int router_rule_check(const struct router_rule *r, struct err *e);
bool router_rule_matches(const struct router_rule *r, const struct router_facts *f);
bool router_rule_uses(const struct router_rule *r, const char *model);
void router_rule_fini(struct router_rule *r);

#endif
