/* chat.c - messages to prompt text with the model's own template. */
#include "engine/chat/chat.h"

#include <string.h>

#include "base/arg.h"
#include "base/buf.h"
#include "engine/engine_state.h"
#include "engine/kinds.h"
#include "wire/json_scan.h"

#define MAX_CONTEXT_BYTES ((size_t)64 << 20)
#define MAX_PROMPT_BYTES ((size_t)64 << 20)
#define NO_SYSTEM "System role not supported" /* the error that Gemma's templates raise */

/* ChatML, for models without a template: most of them were trained on it. */
static const char chatml[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

void chat_open(struct shoal_engine *en)
{
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    const char *src = info->chat_template ? info->chat_template : chatml;
    size_t n = info->chat_template ? info->chat_template_bytes : sizeof(chatml) - 1;
    if (chat_template_parse(&en->chat, src, n, &en->chat_error) < 0)
        en->chat = NULL;
    en->tool_format = tool_format_detect(src, n);
    en->tools_in_system =
        memmem(src, n, TOOL_FORMAT_IN_SYSTEM, sizeof(TOOL_FORMAT_IN_SYSTEM) - 1) != NULL;
    en->no_system = memmem(src, n, NO_SYSTEM, sizeof(NO_SYSTEM) - 1) != NULL;
}

enum tool_format chat_tool_format(const struct shoal_engine *en)
{
    return en->tool_format;
}

void chat_close(struct shoal_engine *en)
{
    chat_template_destroy(en->chat);
    en->chat = NULL;
}

/* A text of the context has a NUL: the reader of texts that end with one would lose the rest. */
static int check_context(const char *json, size_t n, struct err *e)
{
    struct json_scan scan;
    struct err found;
    if (json_scan(&scan, json, n, SIZE_MAX, &found) == 0)
        return 0;
    return err_set(e, SHOAL_EFORMAT,
                   "%s%s%s contains NUL (\\u0000), which is not allowed in a chat: remove it",
                   scan.path[0] ? "'" : "", scan.path[0] ? scan.path : "the context",
                   scan.path[0] ? "'" : "");
}

struct value chat_token_value(const struct tokenizer *t, int32_t id)
{
    const struct str p = tokenizer_piece(t, id, TOKENIZER_RENDER_SPECIAL);
    return value_text(p.p, id == TOKENIZER_NONE ? 0 : p.n);
}

int chat_usable(const struct shoal_engine *en, struct err *e)
{
    if (!(en->kinds & SHOAL_KIND_GENERATE))
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    return en->chat ? 0
                    : err_set(e, en->chat_error.code, "cannot use the model's chat template: %s",
                              en->chat_error.msg);
}

int chat_render_json(const struct shoal_engine *en, struct buf *out, const char *json, size_t n,
                     chat_template_text *text, void *text_ctx, struct err *e)
{
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    const struct value_member vars[] = {{"bos_token", chat_token_value(en->tokenizer, info->bos)},
                                        {"eos_token", chat_token_value(en->tokenizer, info->eos)}};
    const struct chat_template_opts o = {
        .vars = vars, .n_vars = 2, .text = text, .text_ctx = text_ctx};
    int rc = chat_usable(en, e);
    if (rc == 0 && n > MAX_CONTEXT_BYTES)
        rc = err_set(e, SHOAL_ELIMIT, "the context of %zu bytes is too large", n);
    if (rc == 0)
        rc = check_context(json, n, e);
    return rc < 0 ? rc : chat_template_render_opts(en->chat, out, json, n, &o, e);
}

int shoal_chat_prompt(const struct shoal_engine *en, const char *context_json, size_t n_json,
                      char **text, size_t *n, struct err *e)
{
    struct buf out;
    struct err own;
    if (!e)
        e = &own;
    if (n)
        *n = 0;
    int rc = arg_check(text, "text", e);
    if (rc < 0)
        return rc;
    *text = NULL;
    rc = arg_check(en, "engine", e);
    if (rc == 0)
        rc = arg_check(context_json, "context_json", e);
    if (rc < 0)
        return rc;
    buf_init(&out, MAX_PROMPT_BYTES);
    rc = chat_render_json(en, &out, context_json, n_json, NULL, NULL, e);
    if (rc == 0 && !(*text = buf_take(&out, n)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the prompt");
    buf_fini(&out);
    return rc;
}
