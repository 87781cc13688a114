/* value.h - a small tree of typed values: data from a client that is passed on unchanged, such as
 * the variables of a chat template.
 *
 * Thread:    plain data.
 * Ownership: the builder of a tree owns its memory, usually an arena. Texts are NUL-terminated;
 *            their length does not count the NUL. */
#ifndef SHOAL_BASE_VALUE_H
#define SHOAL_BASE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_TEXT, VALUE_LIST, VALUE_MAP };

struct value_member;

struct value {
    enum value_kind kind;
    union {
        bool boolean;
        double number;
        struct {
            const char *p;
            size_t n;
        } text;
        struct {
            const struct value *items;
            size_t n;
        } list;
        struct {
            const struct value_member *members; /* in order; the last of equal keys wins */
            size_t n;
        } map;
    };
};

struct value_member {
    const char *key;
    struct value value;
};

static inline struct value value_text(const char *p, size_t n)
{
    return (struct value){.kind = VALUE_TEXT, .text = {p, n}};
}

static inline struct value value_bool(bool b)
{
    return (struct value){.kind = VALUE_BOOL, .boolean = b};
}

#endif
