/* infill_tokens.c - see infill_tokens.h. */
#include "engine/chat/infill_tokens.h"

#include <string.h>

#include "engine/engine_state.h"
#include "engine/kinds.h"

#define MAX_PROMPT_TOKENS ((size_t)1 << 26)

#define REPOSITORY "project\n" /* its name, and that of the file to fill in, are unknown */
#define THIS_FILE "file\n"
#define SNIPPET "\n\n--- snippet ---\n\n" /* for vocabularies without a token for files */

static int encode(const struct shoal_engine *en, struct tok_ids *ids, const char *text, size_t n,
                  struct err *e)
{
    return n > 0 ? tokenizer_encode(en->tokenizer, ids, text, n, 0, e) : 0;
}

/* A special token followed by a name. */
static int put_named(const struct shoal_engine *en, struct tok_ids *ids, int32_t token,
                     const char *name, struct err *e)
{
    int rc = tok_ids_push(ids, token);
    return rc < 0 ? rc : encode(en, ids, name, strlen(name), e);
}

/* The files, in the format of models trained on repositories: each after a token and its name, and
 * finally the name of the file to fill in. */
static int put_files(const struct shoal_engine *en, struct tok_ids *ids, const struct infill *what,
                     struct err *e)
{
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    int rc = info->fim_rep >= 0 ? put_named(en, ids, info->fim_rep, REPOSITORY, e) : 0;
    for (uint32_t i = 0; i < what->n_files && rc == 0; i++) {
        const struct infill_file *f = &what->files[i];
        if (info->fim_sep >= 0) {
            rc = put_named(en, ids, info->fim_sep, f->name ? f->name : "file", e);
            if (rc == 0)
                rc = encode(en, ids, "\n", 1, e);
        } else {
            rc = encode(en, ids, SNIPPET, sizeof(SNIPPET) - 1, e);
        }
        if (rc == 0)
            rc = encode(en, ids, f->text, f->n_text, e);
    }
    if (rc == 0 && info->fim_sep >= 0)
        rc = put_named(en, ids, info->fim_sep, THIS_FILE, e);
    return rc;
}

/* The text to fill in, between its marks. */
static int put_texts(const struct shoal_engine *en, struct tok_ids *ids, const struct infill *what,
                     struct err *e)
{
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    int rc = tok_ids_push(ids, info->fim_pre);
    if (rc == 0)
        rc = encode(en, ids, what->prefix, what->n_prefix, e);
    if (rc == 0)
        rc = tok_ids_push(ids, info->fim_suf);
    if (rc == 0)
        rc = encode(en, ids, what->suffix, what->n_suffix, e);
    return rc < 0 ? rc : tok_ids_push(ids, info->fim_mid);
}

/* As much of the files as fits, from their end, and the texts. */
static int join(const struct shoal_engine *en, struct tok_ids *out, const struct tok_ids *files,
                const struct tok_ids *texts, uint32_t max_tokens)
{
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    const size_t n_ctx = en->lm.info.n_ctx;
    const size_t rest = texts->n + 1 + (max_tokens ? max_tokens : n_ctx / 8);
    const size_t room = n_ctx > rest ? n_ctx - rest : 0;
    int rc = info->add_bos ? tok_ids_push(out, info->bos) : 0;
    for (size_t i = files->n > room ? files->n - room : 0; i < files->n && rc == 0; i++)
        rc = tok_ids_push(out, files->ids[i]);
    for (size_t i = 0; i < texts->n && rc == 0; i++)
        rc = tok_ids_push(out, texts->ids[i]);
    return rc;
}

int infill_tokens_of(const struct shoal_engine *en, const struct infill *what, int32_t **tokens,
                     size_t *n_tokens, struct err *e)
{
    *tokens = NULL;
    *n_tokens = 0;
    if (!(en->kinds & SHOAL_KIND_GENERATE))
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    if (info->fim_pre < 0 || info->fim_suf < 0 || info->fim_mid < 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the model cannot fill in text: its vocabulary has no prefix and suffix "
                       "tokens; leave out the suffix");
    struct tok_ids files, texts, ids;
    tok_ids_init(&files, MAX_PROMPT_TOKENS);
    tok_ids_init(&texts, MAX_PROMPT_TOKENS);
    tok_ids_init(&ids, MAX_PROMPT_TOKENS);
    int rc = put_texts(en, &texts, what, e);
    if (rc == 0 && what->n_files > 0)
        rc = put_files(en, &files, what, e);
    if (rc == 0)
        rc = join(en, &ids, &files, &texts, what->max_tokens);
    if (rc == 0) {
        *tokens = ids.ids;
        *n_tokens = ids.n;
        ids.ids = NULL;
    } else {
        err_set(e, rc, "cannot tokenize the text to fill in: %s", err_text(rc));
    }
    tok_ids_fini(&files);
    tok_ids_fini(&texts);
    tok_ids_fini(&ids);
    return rc;
}
