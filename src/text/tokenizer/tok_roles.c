/* tok_roles.c - see tok_roles.h.
 *
 * Files are not tidy: token types are missing or wrong, and no key names the end-of-turn tokens.
 * They are found by the well-known spellings, in the order of the table, so that the result does
 * not depend on chance. */
#include "text/tokenizer/tok_roles.h"

#include <string.h>

#include "base/strmap.h"
#include "format/token_type.h"

enum token_role {
    TOKEN_ROLE_EOT,
    TOKEN_ROLE_EOM,
    TOKEN_ROLE_FIM_PRE,
    TOKEN_ROLE_FIM_SUF,
    TOKEN_ROLE_FIM_MID,
    TOKEN_ROLE_FIM_PAD,
    TOKEN_ROLE_FIM_REP,
    TOKEN_ROLE_FIM_SEP,
    N_TOKEN_ROLES,
    TOKEN_ROLE_NONE = N_TOKEN_ROLES,
};

/* Spellings of special tokens; within a role the first one that the vocabulary has is taken. */
static const struct spelling {
    const char *text;
    enum token_role role;
    bool eog;
} spellings[] = {
    {"<|eot_id|>", TOKEN_ROLE_EOT, true},
    {"<|im_end|>", TOKEN_ROLE_EOT, true},
    {"<|end|>", TOKEN_ROLE_EOT, true},
    {"<end_of_turn>", TOKEN_ROLE_EOT, true},
    {"<turn|>", TOKEN_ROLE_EOT, true},
    {"<end_of_utterance>", TOKEN_ROLE_EOT, true},
    {"<|endoftext|>", TOKEN_ROLE_EOT, true},
    {"<|end_of_text|>", TOKEN_ROLE_EOT, true},
    {"<EOT>", TOKEN_ROLE_EOT, true},
    {"_<EOT>", TOKEN_ROLE_EOT, true},
    {"[EOT]", TOKEN_ROLE_EOT, true},
    {"<\xef\xbd\x9c"
     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
     TOKEN_ROLE_EOT, true},
    {"<|eom_id|>", TOKEN_ROLE_EOM, true},
    {"<|return|>", TOKEN_ROLE_NONE, true},
    {"<|call|>", TOKEN_ROLE_NONE, true},
    {"<|calls|>", TOKEN_ROLE_NONE, true},
    {"<|flush|>", TOKEN_ROLE_NONE, true},
    {"</s>", TOKEN_ROLE_NONE, true},
    {"<eos>", TOKEN_ROLE_NONE, true},
    {"[EOS]", TOKEN_ROLE_NONE, true},
    {"[e~[", TOKEN_ROLE_NONE, true},
    {"<|tool_response>", TOKEN_ROLE_NONE, true},
    {"<|fim_prefix|>", TOKEN_ROLE_FIM_PRE, false},
    {"<fim-prefix>", TOKEN_ROLE_FIM_PRE, false},
    {"<fim_prefix>", TOKEN_ROLE_FIM_PRE, false},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "begin\xef\xbd\x9c>",
     TOKEN_ROLE_FIM_PRE, false},
    {"<PRE>", TOKEN_ROLE_FIM_PRE, false},
    {"\xe2\x96\x81<PRE>", TOKEN_ROLE_FIM_PRE, false},
    {"<|code_prefix|>", TOKEN_ROLE_FIM_PRE, false},
    {"<|prefix|>", TOKEN_ROLE_FIM_PRE, false},
    {"<|fim_suffix|>", TOKEN_ROLE_FIM_SUF, false},
    {"<fim-suffix>", TOKEN_ROLE_FIM_SUF, false},
    {"<fim_suffix>", TOKEN_ROLE_FIM_SUF, false},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81hole\xef\xbd\x9c>",
     TOKEN_ROLE_FIM_SUF, false},
    {"<SUF>", TOKEN_ROLE_FIM_SUF, false},
    {"\xe2\x96\x81<SUF>", TOKEN_ROLE_FIM_SUF, false},
    {"<|code_suffix|>", TOKEN_ROLE_FIM_SUF, false},
    {"<|suffix|>", TOKEN_ROLE_FIM_SUF, false},
    {"<|fim_middle|>", TOKEN_ROLE_FIM_MID, false},
    {"<fim-middle>", TOKEN_ROLE_FIM_MID, false},
    {"<fim_middle>", TOKEN_ROLE_FIM_MID, false},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "end\xef\xbd\x9c>",
     TOKEN_ROLE_FIM_MID, false},
    {"<MID>", TOKEN_ROLE_FIM_MID, false},
    {"\xe2\x96\x81<MID>", TOKEN_ROLE_FIM_MID, false},
    {"<|code_middle|>", TOKEN_ROLE_FIM_MID, false},
    {"<|middle|>", TOKEN_ROLE_FIM_MID, false},
    {"<|fim_pad|>", TOKEN_ROLE_FIM_PAD, false},
    {"<fim-pad>", TOKEN_ROLE_FIM_PAD, false},
    {"<fim_pad>", TOKEN_ROLE_FIM_PAD, false},
    {"<PAD>", TOKEN_ROLE_FIM_PAD, false},
    {"[PAD]", TOKEN_ROLE_FIM_PAD, false},
    {"<|fim_repo|>", TOKEN_ROLE_FIM_REP, false},
    {"<|repo_name|>", TOKEN_ROLE_FIM_REP, false},
    {"<fim-repo>", TOKEN_ROLE_FIM_REP, false},
    {"<REPO>", TOKEN_ROLE_FIM_REP, false},
    {"<reponame>", TOKEN_ROLE_FIM_REP, false},
    {"<|file_sep|>", TOKEN_ROLE_FIM_SEP, false},
};
#define N_SPELLINGS (sizeof(spellings) / sizeof(spellings[0]))

static void set_eog(struct tok_vocab *v, int32_t id)
{
    if (id >= 0)
        v->attr[id] |= TOK_ATTR_EOG;
}

/* Finds special tokens by their spelling: at[k] is the token spelled spellings[k], or NONE. */
static int find_spellings(int32_t *at, const struct tok_roles_source *src, struct err *e)
{
    struct strmap m;
    struct str w;
    uint32_t id, k;
    int rc = 0;
    for (k = 0; k < N_SPELLINGS; k++)
        at[k] = TOKENIZER_NONE;
    if (strmap_init(&m, N_SPELLINGS) < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    for (k = 0; k < N_SPELLINGS && rc >= 0; k++)
        rc = strmap_put(&m, spellings[k].text, strlen(spellings[k].text), k);
    while (rc >= 0 && src->next(src->ctx, &id, &w)) {
        if (w.n < 4 || !(*w.p == '<' || *w.p == '[' || *w.p == '_' || *w.p == '\xe2'))
            continue; /* no spelling begins otherwise */
        if (strmap_get(&m, w.p, w.n, &k) && (at[k] < 0 || (int32_t)id < at[k]))
            at[k] = (int32_t)id;
    }
    strmap_fini(&m);
    return rc < 0 ? err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer") : 0;
}

static bool has_spelling(const int32_t *at, const char *text, int32_t *id)
{
    for (size_t k = 0; k < N_SPELLINGS; k++)
        if (strcmp(spellings[k].text, text) == 0) {
            *id = at[k];
            return at[k] >= 0;
        }
    return false;
}

int tok_roles_find(struct tokenizer_info *in, struct tok_vocab *v,
                   const struct tok_roles_source *src, struct err *e)
{
    int32_t *const role[N_TOKEN_ROLES] = {
        [TOKEN_ROLE_EOT] = &in->eot,         [TOKEN_ROLE_EOM] = &in->eom,
        [TOKEN_ROLE_FIM_PRE] = &in->fim_pre, [TOKEN_ROLE_FIM_SUF] = &in->fim_suf,
        [TOKEN_ROLE_FIM_MID] = &in->fim_mid, [TOKEN_ROLE_FIM_PAD] = &in->fim_pad,
        [TOKEN_ROLE_FIM_REP] = &in->fim_rep, [TOKEN_ROLE_FIM_SEP] = &in->fim_sep,
    };
    int32_t at[N_SPELLINGS], id, other;
    int rc = find_spellings(at, src, e);
    if (rc < 0)
        return rc;
    for (size_t k = 0; k < N_SPELLINGS; k++) {
        const struct spelling *sp = &spellings[k];
        bool takes = sp->role != TOKEN_ROLE_NONE && *role[sp->role] < 0;
        if (at[k] < 0)
            continue;
        if (takes)
            *role[sp->role] = at[k];
        if (sp->eog)
            set_eog(v, at[k]);
        if (takes || sp->eog) /* some files mark it as a word; plain text must not become it */
            v->type[at[k]] = TOKEN_TYPE_CONTROL;
    }
    /* Where a reply has several messages, <|end|> ends only one of them. */
    if (has_spelling(at, "<|end|>", &id) &&
        ((has_spelling(at, "<|return|>", &other) && has_spelling(at, "<|call|>", &other)) ||
         (has_spelling(at, "<|flush|>", &other) && has_spelling(at, "<|calls|>", &other)))) {
        v->attr[id] &= (uint8_t)~TOK_ATTR_EOG;
        if (in->eot == id)
            in->eot = TOKENIZER_NONE;
    }
    /* In gemma 4, </s> is an HTML tag. */
    if (has_spelling(at, "</s>", &id) && has_spelling(at, "<|tool_response>", &other)) {
        v->attr[id] &= (uint8_t)~TOK_ATTR_EOG;
        v->type[id] = TOKEN_TYPE_NORMAL;
    }
    set_eog(v, in->eos);
    set_eog(v, in->eot);
    set_eog(v, in->eom);
    set_eog(v, in->fim_pad);
    set_eog(v, in->fim_rep);
    set_eog(v, in->fim_sep);
    return 0;
}
