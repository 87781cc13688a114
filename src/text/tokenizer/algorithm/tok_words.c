/* tok_words.c - see tok_words.h. */
#include "text/tokenizer/algorithm/tok_words.h"

#include "text/tokenizer/tok_call.h"
#include "text/tokenizer/tok_vocab.h"

static int word(const void *state, struct tok_call *c, void *work, const char *p, size_t n)
{
    const struct tok_vocab *v = state;
    uint32_t id;
    (void)work;
    if (tok_vocab_find(v, p, n, &id))
        return tok_call_emit(c, (int32_t)id, p, n);
    return v->unk >= 0 ? tok_call_emit(c, v->unk, p, n) : 0;
}

static void destroy(void *state)
{
    (void)state; /* belongs to the tokenizer */
}

const struct tokenizer_ops tok_words_ops = {.word = word, .destroy = destroy};
