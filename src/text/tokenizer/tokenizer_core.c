/* tokenizer_core.c - see tokenizer_core.h. */
#include "text/tokenizer/tokenizer_core.h"

/* Spaces are part of tokens in many vocabularies, but not of the words that a caller marks. */
static void trim_spans(struct tok_call *c, size_t from)
{
    const struct tok_spans *sp = c->spans;
    for (size_t i = from; i < c->out->n; i++) {
        while (sp->start[i] < sp->end[i] && sp->input[sp->start[i]] == ' ')
            sp->start[i]++;
        while (sp->start[i] < sp->end[i] && sp->input[sp->end[i] - 1] == ' ')
            sp->end[i]--;
    }
}

int tokenizer_core_run(const struct tokenizer *t, struct tok_call *c, const char *text, size_t n,
                       unsigned flags)
{
    struct tok_spans *spans = c->spans;
    size_t before = c->out->n;
    if (n > TOK_MAX_TEXT)
        return SHOAL_ELIMIT;
    c->view = (struct tok_view){.p = text};
    if (spans) {
        spans->input = text;
        spans->n_input = n;
    }
    int rc = t->ops->encode(t->state, c, text, n, flags);
    if (rc == 0 && spans && t->trim_spans)
        trim_spans(c, before);
    return rc;
}

int tokenizer_core_encode(const struct tokenizer *t, struct tok_ids *out, struct tok_spans *spans,
                          const char *text, size_t n, unsigned flags)
{
    struct tok_call c = {.out = out, .spans = spans};
    return tokenizer_core_run(t, &c, text, n, flags);
}

static void add_item(struct tokenizer_template *tp, bool wanted, int32_t id, uint8_t type)
{
    if (!wanted || tp->n == TOKENIZER_MAX_TEMPLATE)
        return;
    tp->items[tp->n].id = id;
    tp->items[tp->n++].type = type;
}

/* One text: bos, text, eos, sep as info says.  Two texts, as the models were trained: BERT writes
 * CLS a SEP b SEP and counts b as segment 1; RoBERTa and its kin <s> a </s></s> b </s>; otherwise
 * one after the other, each with its end token. */
void tokenizer_core_templates(struct tokenizer *t)
{
    struct tokenizer_info *in = &t->info;
    bool wpm = in->kind == TOKENIZER_KIND_WPM;
    in->add_bos &= in->bos >= 0;
    in->add_eos &= in->eos >= 0;
    in->add_sep &= in->sep >= 0;
    t->single.n = t->pair.n = 0;
    add_item(&t->single, in->add_bos, in->bos, 0);
    add_item(&t->single, true, TOKENIZER_TEXT_A, 0);
    add_item(&t->single, in->add_eos, in->eos, 0);
    add_item(&t->single, in->add_sep && wpm, in->sep, 0);
    t->pair = t->single;
    add_item(&t->pair, in->add_sep && !wpm, in->sep, 0);
    add_item(&t->pair, true, TOKENIZER_TEXT_B, wpm);
    add_item(&t->pair, in->add_eos, in->eos, wpm);
    add_item(&t->pair, in->add_sep && wpm, in->sep, 1);
}
