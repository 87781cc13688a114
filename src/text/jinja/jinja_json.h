/* jinja_json.h - JSON text to values and back, like Python's json module.
 *
 * Thread, ownership: as in jinja_value.h.
 * Failure:   SHOAL_EFORMAT for text that is not JSON, SHOAL_EINVAL for a value that JSON cannot
 *            hold, SHOAL_ELIMIT for data nested too deeply. */
#ifndef SHOAL_TEXT_JINJA_JINJA_JSON_H
#define SHOAL_TEXT_JINJA_JINJA_JSON_H

#include "text/jinja/jinja_value.h"

struct jinja_json_opts { /* all zero: {"a": 1, "b": [1, 2]} on one line */
    bool lines;          /* one value per line, each level with `indent` before it */
    struct jinja_str indent;
    bool ensure_ascii; /* \uXXXX for what is not ASCII */
    bool sort_keys;
    bool separators; /* the two below are set */
    struct jinja_str item_separator, key_separator;
};

/* Replaces a string by another that lives as long as the run; false: out of memory. */
typedef bool jinja_json_text(void *ctx, const char **p, size_t *n);

/* Numbers without fraction and exponent are integers; of equal keys the last counts.  put: what
 * each string is replaced with, names of members excepted; NULL: they stay. */
SHOAL_MUST_CHECK int jinja_json_read(struct jinja_run *r, struct jinja_value *out, const char *text,
                                     size_t n, jinja_json_text *put, void *put_ctx);
/* Appends to r->out. */
SHOAL_MUST_CHECK int jinja_json_write(struct jinja_run *r, const struct jinja_value *v,
                                      const struct jinja_json_opts *o);

#endif
