/* chat_template.h - messages to the prompt that a model was trained on.
 *
 * A chat template is the Jinja source that comes with a model (tokenizer.chat_template in a GGUF
 * file). Rendering equals, byte for byte, Python's Jinja2 as configured by the transformers
 * library; docs/CHAT_TEMPLATES.md lists what is supported.
 *
 * Thread:    a parsed template is immutable: any number of threads may render it at once.
 * Ownership: parse gives the template to the caller, destroy takes it back (NULL is fine).  The
 *            source and the context are borrowed for the call only.
 * Failure:   0 or SHOAL_E*, with the line and column of the template where there is one:
 *            EFORMAT       the template or the context cannot be read
 *            EUNSUPPORTED  the template uses something that is not supported
 *            EINVAL        the template refuses these messages (raise_exception), or a value is
 *                          of the wrong kind
 *            ELIMIT        too large, too deep, too long
 *            ENOMEM        out of memory
 *            On failure *out is NULL, and the output buf is unchanged. */
#ifndef SHOAL_TEXT_CHAT_TEMPLATE_H
#define SHOAL_TEXT_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct chat_template;
struct value;
struct value_member;

/* Replaces a text by another, which must live until the rendering ends; false: out of memory. */
typedef bool chat_template_text(void *ctx, const char **p, size_t *n);

struct chat_template_opts { /* all zero means defaults */
    bool fixed_time;        /* strftime_now() shows unix_s + utc_offset_s, not the clock */
    int64_t unix_s;         /* seconds since 1970, UTC */
    int32_t utc_offset_s;
    uint64_t max_steps;      /* 0: 20 million; a step is about one node of the template */
    size_t max_output_bytes; /* 0: 16 MiB */
    size_t max_memory_bytes; /* 0: 128 MiB, for values while rendering */
    /* Variables for those that the context lacks. */
    const struct value_member *vars;
    size_t n_vars;
    /* For every text of a context in JSON, names of members excepted; NULL: they stay. */
    chat_template_text *text;
    void *text_ctx;
};

SHOAL_MUST_CHECK int chat_template_parse(struct chat_template **out, const char *src, size_t n,
                                         struct err *e);
void chat_template_destroy(struct chat_template *t);

/* Appends the prompt to out.  context_json: {"messages": [...], "tools": [...] or null,
 * "add_generation_prompt": true, "bos_token": "...", "eos_token": "..."} and any other variable
 * of the template, such as "enable_thinking". */
SHOAL_MUST_CHECK int chat_template_render(const struct chat_template *t, struct buf *out,
                                          const char *context_json, size_t n, struct err *e);
/* The same from typed values: context is a map of the variables (base/value.h), its texts valid
 * UTF-8. */
SHOAL_MUST_CHECK int chat_template_render_value(const struct chat_template *t, struct buf *out,
                                                const struct value *context, struct err *e);
/* The same with limits and a time of the caller's; o may be NULL. */
SHOAL_MUST_CHECK int chat_template_render_opts(const struct chat_template *t, struct buf *out,
                                               const char *context_json, size_t n,
                                               const struct chat_template_opts *o, struct err *e);

#endif
