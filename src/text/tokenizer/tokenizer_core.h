/* tokenizer_core.h - struct tokenizer: shared by all algorithms. Private to src/text/tokenizer.
 *
 * A loader (tok_gguf.h, tok_hf_load.c) fills it; tokenizer.c and tok_encode.c work on it. Data of a
 * single algorithm is in its own state, behind ops.
 *
 * Thread:    immutable after it is loaded.
 * Ownership: tokenizer_destroy frees everything, also after a failed load. */
#ifndef SHOAL_TEXT_TOKENIZER_TOKENIZER_CORE_H
#define SHOAL_TEXT_TOKENIZER_TOKENIZER_CORE_H

#include "text/tokenizer/tok_call.h"
#include "text/tokenizer/tok_special.h"
#include "text/tokenizer/tok_vocab.h"
#include "text/tokenizer/tokenizer_info.h"
#include "text/tokenizer/tokenizer_ops.h"

#define TOKENIZER_MAX_TEMPLATE 32
struct tokenizer_template { /* special tokens around the texts */
    struct {
        int32_t id; /* or TOKENIZER_TEXT_A, _B: the tokens of that text */
        uint8_t type;
    } items[TOKENIZER_MAX_TEMPLATE];
    unsigned n;
};
enum { TOKENIZER_TEXT_A = -1, TOKENIZER_TEXT_B = -2 };

/* Where decoding removes the space that encoding put in front of a text. */
enum tokenizer_strip {
    TOKENIZER_STRIP_NONE,
    TOKENIZER_STRIP_FIRST, /* from the first visible token */
    TOKENIZER_STRIP_EACH,  /* at the start and after special tokens */
    TOKENIZER_STRIP_ENDS,  /* all spaces at both ends of the text (a stream: at its start) */
};

struct tokenizer {
    struct tokenizer_info info;
    char *strings; /* storage of model, pre and chat template */
    struct tok_vocab v;
    struct tok_special special; /* tokens that are found by their spelling */
    struct tokenizer_template single, pair;
    bool trim_spans; /* ranges of tokens leave spaces at their ends out */
    enum tokenizer_strip strip;
    const struct tokenizer_ops *ops;
    void *state; /* of ops */
};

/* Appends the tokens of one text, without a template.  The call supplies out, spans, plain. */
SHOAL_MUST_CHECK int tokenizer_core_run(const struct tokenizer *t, struct tok_call *c,
                                        const char *text, size_t n, unsigned flags);
/* The same; spans may be NULL. */
SHOAL_MUST_CHECK int tokenizer_core_encode(const struct tokenizer *t, struct tok_ids *out,
                                           struct tok_spans *spans, const char *text, size_t n,
                                           unsigned flags);
/* Makes the templates from bos, eos and sep of info. */
void tokenizer_core_templates(struct tokenizer *t);

#endif
