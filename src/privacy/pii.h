/* pii.h - finds personal data in text by rules.
 *
 * A rule accepts a form (an e-mail address, digits in groups) and then checks what can be checked:
 * check digits, lengths of a country, ranges, words before it.  Names of people and places need a
 * model and are not found here; their kinds exist so that callers can add them.
 *
 * Thread:    pure functions.
 * Ownership: everything is borrowed.
 * Failure:   none: bytes that are not UTF-8 are separators. */
#ifndef SHOAL_PRIVACY_PII_H
#define SHOAL_PRIVACY_PII_H

#include <stdbool.h>
#include <stddef.h>

enum pii_kind {
    PII_EMAIL,
    PII_PHONE,
    PII_CARD,
    PII_IBAN,
    PII_IP,
    PII_ID,    /* a national id */
    PII_BIRTH, /* a date of birth, in a text that says so */
    PII_PERSON,
    PII_PLACE,
    PII_N_KINDS
};

#define PII_BIT(kind) (1u << (kind))
#define PII_BY_RULES (PII_BIT(PII_PERSON) - 1u) /* what pii_find finds */
#define PII_BY_MODEL (PII_BIT(PII_PERSON) | PII_BIT(PII_PLACE))

struct pii_hit {
    enum pii_kind kind;
    const char *form; /* the rule: "us_ssn", "visa"; "": there is only one */
    size_t start, end;
};

/* Calls fn for every hit, in order, without overlaps.  A hit is one or more whole characters, and
 * has no quote, backslash or control character.  kinds: PII_BIT()s; others are ignored. */
void pii_find(const char *text, size_t n, unsigned kinds,
              void (*fn)(void *ctx, const struct pii_hit *h), void *ctx);

/* "email": for configuration, marks and programs. */
const char *pii_kind_name(enum pii_kind k);
/* "an e-mail address": for people. */
const char *pii_kind_text(enum pii_kind k);
/* False: there is no such kind. */
bool pii_kind_read(enum pii_kind *out, const char *name, size_t n);

#endif
