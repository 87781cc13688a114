/* chat.c - messages to prompt text with the model's own template. */
#include "engine/chat/chat.h"

#include <string.h>

#include "base/mem.h"
#include "text/chat_template.h"
#include "engine/engine_state.h"
#include "engine/kinds.h"
#include "wire/json_out.h"
#include "wire/json_scan.h"

#define MAX_CONTEXT_BYTES ((size_t)64 << 20)
#define MAX_PROMPT_BYTES ((size_t)64 << 20)
#define NO_SYSTEM "System role not supported" /* what Gemma's templates raise */

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

static void put_token(struct json_out *j, const struct tokenizer *t, const char *key, int32_t id)
{
    struct str p = tokenizer_piece(t, id, TOKENIZER_RENDER_SPECIAL);
    json_out_key(j, key);
    json_out_strn(j, p.p, id == TOKENIZER_NONE ? 0 : p.n);
}

int chat_check_context(const char *json, size_t n, struct err *e)
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

/* The caller's object with bos_token and eos_token in front, so that the caller can override
 * them. */
static int put_context(struct buf *b, const struct tokenizer *t, const char *json, size_t n,
                       struct err *e)
{
    size_t at = 0;
    while (at < n && strchr(" \t\r\n", json[at]) && json[at])
        at++;
    if (at == n || json[at] != '{')
        return err_set(e, SHOAL_EFORMAT, "the context of a chat must be a JSON object");
    at++;
    while (at < n && strchr(" \t\r\n", json[at]) && json[at])
        at++;
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    put_token(&j, t, "bos_token", tokenizer_info(t)->bos);
    put_token(&j, t, "eos_token", tokenizer_info(t)->eos);
    if (at < n && json[at] != '}')
        buf_putc(b, ',');
    buf_put(b, json + at, n - at);
    return b->rc < 0 ? err_set(e, b->rc, "the context of %zu bytes is too large", n) : 0;
}

int shoal_chat_prompt(const struct shoal_engine *en, const char *context_json, size_t n_json,
                      char **text, size_t *n, struct err *e)
{
    struct buf context, out;
    struct err own;
    if (!e)
        e = &own;
    *text = NULL;
    *n = 0;
    if (!(en->kinds & SHOAL_KIND_GENERATE))
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    if (!en->chat)
        return err_set(e, en->chat_error.code, "cannot use the model's chat template: %s",
                       en->chat_error.msg);
    buf_init(&context, MAX_CONTEXT_BYTES);
    buf_init(&out, MAX_PROMPT_BYTES);
    int rc = chat_check_context(context_json, n_json, e);
    if (rc == 0)
        rc = put_context(&context, en->tokenizer, context_json, n_json, e);
    if (rc == 0)
        rc = chat_template_render(en->chat, &out, buf_str(&context), context.len, e);
    if (rc == 0 && !(*text = buf_take(&out, n)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the prompt");
    buf_fini(&context);
    buf_fini(&out);
    return rc;
}
