/* jinja_parse.h - template source to a tree of statements and expressions.
 *
 * Thread:    a parsed template is never written again: any number of threads may render it.
 * Ownership: the tree lives in the template's arena; jinja_parse_fini frees it whole.
 * Failure:   SHOAL_EFORMAT (or SHOAL_EUNSUPPORTED for a statement, filter or test that is not
 *            known) with line and column, SHOAL_ELIMIT for one too large or nested too deeply,
 *            SHOAL_ENOMEM. */
#ifndef SHOAL_TEXT_JINJA_PARSE_JINJA_PARSE_H
#define SHOAL_TEXT_JINJA_PARSE_JINJA_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/arena.h"
#include "text/jinja/parse/jinja_node.h"

enum {
    JINJA_MAX_SOURCE = 1024 * 1024, /* bytes of a template */
    JINJA_MAX_NESTING = 120,        /* brackets, operators and blocks inside each other */
    JINJA_MAX_HEIGHT = 400,         /* of the tree: long chains such as a + b + c + ... count */
    JINJA_MAX_NAMES = 2048,         /* different names of variables */
};

struct jinja_template {
    struct arena arena;
    struct jinja_node *body; /* chain of statements */
    struct jinja_frame root;
};

SHOAL_MUST_CHECK int jinja_parse(struct jinja_template *out, const char *src, size_t n,
                                 struct err *e);
void jinja_parse_fini(struct jinja_template *t);

#endif
