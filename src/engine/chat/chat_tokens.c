/* chat_tokens.c - messages to tokens; only the template itself can produce special tokens.
 *
 * A template renders to text, and a user's message may contain the spelling of a special token:
 * "<|im_end|>" in a message must not end that message.  Tokenizing each message on its own would
 * give other tokens than the model was trained on, and hiding the messages from the template would
 * break templates that inspect them.  So before rendering, every such spelling is enclosed in two
 * noncharacters (which valid text does not contain); after rendering the marks are removed and the
 * whole prompt is tokenized, with those ranges as plain text.
 * The same goes for the end of a message that the next piece could complete ("<|im_" + "end|>"). */
#include "engine/chat/chat_tokens.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/arg.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/value.h"
#include "engine/chat/chat.h"
#include "engine/chat/chat_tools.h"
#include "engine/engine_state.h"
#include "engine/prompt_limit.h"
#include "text/chat_template.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define MAX_DEPTH 64
#define MAX_CONTEXT_BYTES ((size_t)256 << 20)
#define MAX_PROMPT_BYTES ((size_t)64 << 20)

#define MARK_BEGIN "\xef\xb7\x90" /* U+FDD0 */
#define MARK_END "\xef\xb7\x91"   /* U+FDD1 */
#define MARK_BYTES 3u
#define REPLACEMENT "\xef\xbf\xbd"

static bool is_mark(const char *p, size_t n)
{
    return n >= MARK_BYTES && (memcmp(p, MARK_BEGIN, 3) == 0 || memcmp(p, MARK_END, 3) == 0);
}

/* Appends s with spellings of special tokens marked. */
static void mark(struct buf *out, const struct tokenizer *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        bool open = false;
        size_t k = tokenizer_control_at(t, s + i, n - i, &open);
        if (k == 0 && open)
            k = n - i;
        if (k > 0) {
            buf_puts(out, MARK_BEGIN);
            buf_put(out, s + i, k);
            buf_puts(out, MARK_END);
            i += k;
        } else if (is_mark(s + i, n - i)) {
            buf_puts(out, REPLACEMENT);
            i += MARK_BYTES;
        } else {
            buf_putc(out, s[i++]);
        }
    }
}

/* Number of bytes after the mark at p that are plain. A mark without its partner, which the
 * template cut off, is ignored. */
static size_t marked_bytes(const struct tokenizer *t, const char *p, size_t n)
{
    size_t room = tokenizer_info(t)->max_piece_bytes + (size_t)MARK_BYTES;
    if (room > n - MARK_BYTES)
        room = n - MARK_BYTES;
    if (memcmp(p, MARK_BEGIN, MARK_BYTES) != 0)
        return 0;
    const char *close = memmem(p + MARK_BYTES, room, MARK_END, MARK_BYTES);
    return close ? (size_t)(close - p) - MARK_BYTES : 0;
}

/* The next mark in [p, end), or end. */
static const char *next_mark(const char *p, const char *end)
{
    for (; p < end; p++) {
        p = memchr(p, 0xef, (size_t)(end - p));
        if (!p)
            return end;
        if (is_mark(p, (size_t)(end - p)))
            return p;
    }
    return end;
}

static size_t count_marks(const char *p, size_t n)
{
    const char *end = p + n;
    size_t k = 0;
    for (p = next_mark(p, end); p < end; p = next_mark(p + MARK_BYTES, end))
        k++;
    return k;
}

/* Removes the marks from the text; returns its new length and the ranges that they enclosed. */
static size_t take_marks(const struct tokenizer *t, char *text, size_t n,
                         struct tokenizer_range *plain, size_t *n_plain)
{
    const char *p = text, *end = text + n;
    char *out = text;
    *n_plain = 0;
    while (p < end) {
        const char *mark = next_mark(p, end);
        memmove(out, p, (size_t)(mark - p));
        out += mark - p;
        if (mark == end)
            break;
        size_t k = marked_bytes(t, mark, (size_t)(end - mark));
        uint32_t from = (uint32_t)(out - text);
        p = mark + MARK_BYTES;
        if (k == 0)
            continue;
        memmove(out, p, k);
        out += k;
        p += k;
        plain[(*n_plain)++] = (struct tokenizer_range){from, from + (uint32_t)k};
    }
    return (size_t)(out - text);
}

/* The tokens of a rendered prompt.  Its marks are removed from text. */
static int encode(const struct shoal_engine *en, struct tok_ids *ids, char *text, size_t n,
                  struct err *e)
{
    const struct tokenizer *t = en->tokenizer;
    const struct tokenizer_info *info = tokenizer_info(t);
    struct tokenizer_range *plain = NULL;
    size_t n_plain = 0, n_marks = n > 0 ? count_marks(text, n) : 0;
    int rc = 0;
    if (n_marks > 0) {
        plain = mem_zalloc_n(n_marks, sizeof(*plain));
        if (!plain)
            return err_set(e, SHOAL_ENOMEM, "out of memory for the tokens of a chat");
        n = take_marks(t, text, n, plain, &n_plain);
    }
    /* Some templates write the BOS themselves, others leave it to the tokenizer: add it only once.
     */
    if (info->add_bos)
        rc = tok_ids_push(ids, info->bos);
    if (rc == 0 && n > 0)
        rc = tokenizer_encode_mixed(t, ids, text, n, plain, n_plain, e);
    mem_free(plain);
    if (rc == 0 && info->add_bos && ids->n > 1 && ids->ids[1] == info->bos) {
        ids->n--;
        memmove(ids->ids, ids->ids + 1, ids->n * sizeof(*ids->ids));
    }
    return rc == SHOAL_ENOMEM ? err_set(e, rc, "out of memory for the tokens of a chat") : rc;
}

struct marker {
    const struct tokenizer *tokenizer;
    bool plain; /* nothing is marked */
    enum tool_format format;
    struct value tools; /* text for the system message; NULL: none */
    struct arena arena; /* texts that had to change, and the tree of the template's context */
    struct buf text;
};

/* Does the text contain the spelling of a special token, or one of our marks? */
static bool needs_marks(const struct tokenizer *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool open = false;
        if (tokenizer_control_at(t, p + i, n - i, &open) > 0 || open || is_mark(p + i, n - i))
            return true;
    }
    return false;
}

/* The text itself, or a marked copy. */
static struct value marked_text(struct marker *m, const char *p, size_t n)
{
    if (m->plain || !needs_marks(m->tokenizer, p, n))
        return value_text(p, n);
    buf_clear(&m->text);
    mark(&m->text, m->tokenizer, p, n);
    if (m->text.rc < 0)
        m->arena.rc = m->text.rc;
    char *copy = arena_copy(&m->arena, buf_str(&m->text), m->text.len + 1);
    return value_text(copy ? copy : "", copy ? m->text.len : 0);
}

static struct value marked(struct marker *m, const struct value *v, int depth);

static struct value marked_list(struct marker *m, const struct value *v, int depth)
{
    struct value out = *v;
    struct value *items = arena_zalloc_n(&m->arena, v->list.n, sizeof(*items));
    for (size_t i = 0; items && i < v->list.n; i++)
        items[i] = marked(m, &v->list.items[i], depth + 1);
    out.list.items = items;
    return out;
}

static struct value marked_map(struct marker *m, const struct value *v, int depth)
{
    struct value out = *v;
    struct value_member *members = arena_zalloc_n(&m->arena, v->map.n, sizeof(*members));
    for (size_t i = 0; members && i < v->map.n; i++) {
        members[i].key = v->map.members[i].key; /* names come from the caller, not from a user */
        members[i].value = marked(m, &v->map.members[i].value, depth + 1);
    }
    out.map.members = members;
    return out;
}

static struct value marked(struct marker *m, const struct value *v, int depth)
{
    if (depth > MAX_DEPTH) {
        m->arena.rc = SHOAL_ELIMIT;
        return (struct value){.kind = VALUE_NULL};
    }
    switch (v->kind) {
    case VALUE_TEXT:
        return marked_text(m, v->text.p, v->text.n);
    case VALUE_LIST:
        return marked_list(m, v, depth);
    case VALUE_MAP:
        return marked_map(m, v, depth);
    default:
        return *v;
    }
}

static struct value message_value(struct marker *m, const struct chat_message *from)
{
    struct value out = {.kind = VALUE_MAP};
    struct value_member *at = arena_zalloc_n(&m->arena, 6, sizeof(*at));
    if (!at)
        return out;
    out.map.members = at;
    at[out.map.n++] = (struct value_member){"role", marked_text(m, from->role, strlen(from->role))};
    if (from->name)
        at[out.map.n++] =
            (struct value_member){"name", marked_text(m, from->name, strlen(from->name))};
    at[out.map.n++] =
        (struct value_member){"content", marked_text(m, from->content, from->content_bytes)};
    if (m->tools.kind == VALUE_TEXT && strcmp(from->role, "system") == 0)
        at[out.map.n++] = (struct value_member){"tools", marked(m, &m->tools, 1)};
    if (from->n_calls > 0) {
        const struct value calls = chat_tools_calls(&m->arena, from, m->format);
        at[out.map.n++] = (struct value_member){"tool_calls", marked(m, &calls, 2)};
    }
    if (from->call_id) {
        const char *id = chat_tools_id(&m->arena, from->call_id, m->format);
        at[out.map.n++] = (struct value_member){"tool_call_id", marked_text(m, id, strlen(id))};
    }
    return out;
}

/* Whether the last message is the beginning of the answer. */
static bool continues(const struct chat *c)
{
    bool yes = false;
    for (uint32_t i = 0; i < c->n_vars; i++)
        if (strcmp(c->vars[i].key, CHAT_CONTINUE_VAR) == 0)
            yes = c->vars[i].value.kind == VALUE_BOOL && c->vars[i].value.boolean;
    return yes && c->n_messages > 0;
}

/* The end of the last occurrence of a text; NULL: none. */
static const char *last_end(const struct buf *in, const char *text, size_t n)
{
    for (size_t at = n > 0 && in->len >= n ? in->len - n + 1 : 0; at-- > 0;)
        if (memcmp(in->data + at, text, n) == 0)
            return in->data + at + n;
    return NULL;
}

/* Cuts the template's text after the last message, which the answer continues. */
static int cut_behind(struct marker *m, const struct chat_message *last, struct buf *out,
                      struct err *e)
{
    static const char space[] = " \t\r\n";
    const struct value text = marked_text(m, last->content, last->content_bytes);
    const char *p = text.text.p;
    size_t n = text.text.n;
    const char *end = last_end(out, p, n);
    while (!end && n > 0 && strchr(space, p[n - 1])) /* templates trim */
        n--;
    while (!end && n > 0 && strchr(space, *p))
        p++, n--;
    if (!end)
        end = last_end(out, p, n);
    if (!end)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the model's chat template does not render the last message, so it cannot "
                       "be continued");
    out->len = (size_t)(end - out->data);
    return 0;
}

/* Today's date, for templates that show it: without the time of day, so that prompts of one day
 * share a prefix. */
static struct value today(struct marker *m, const char *format)
{
    char text[32];
    struct tm tm;
    const time_t now = time(NULL);
    localtime_r(&now, &tm);
    const size_t n = strftime(text, sizeof(text), format, &tm);
    const char *copy = arena_copy(&m->arena, text, n + 1);
    return value_text(copy ? copy : "", copy ? n : 0);
}

/* The variables that a template sees.  The caller's come last and override ours. */
static struct value context_value(struct marker *m, const struct chat *c)
{
    const struct tokenizer_info *info = tokenizer_info(m->tokenizer);
    struct value out = {.kind = VALUE_MAP}, list = {.kind = VALUE_LIST};
    struct value_member *at = arena_zalloc_n(&m->arena, (size_t)c->n_vars + 8, sizeof(*at));
    struct value *messages = arena_zalloc_n(&m->arena, c->n_messages, sizeof(*messages));
    if (!at || !messages)
        return out;
    for (uint32_t i = 0; i < c->n_messages; i++)
        messages[i] = message_value(m, &c->messages[i]);
    list.list.items = messages;
    list.list.n = c->n_messages;
    out.map.members = at;
    at[out.map.n++] = (struct value_member){"bos_token", chat_token_value(m->tokenizer, info->bos)};
    at[out.map.n++] = (struct value_member){"eos_token", chat_token_value(m->tokenizer, info->eos)};
    at[out.map.n++] = (struct value_member){"messages", list};
    /* names of Llama 3's and Firefunction's templates; others call strftime_now */
    at[out.map.n++] = (struct value_member){"date_string", today(m, "%d %b %Y")};
    at[out.map.n++] = (struct value_member){"datetime", today(m, "%b %d %Y")};
    at[out.map.n++] = (struct value_member){"add_generation_prompt", value_bool(!continues(c))};
    if (chat_has_tools(c)) {
        const struct value tools = chat_tools_list(&m->arena, c);
        at[out.map.n++] = (struct value_member){"tools", marked(m, &tools, 1)};
    }
    if (m->format == TOOL_FORMAT_FUNCTOOLS) {
        const struct value text = chat_tools_text(&m->arena, c);
        at[out.map.n++] = (struct value_member){"functions", marked(m, &text, 1)};
    }
    for (uint32_t i = 0; i < c->n_vars; i++)
        at[out.map.n++] = (struct value_member){c->vars[i].key, marked(m, &c->vars[i].value, 1)};
    return out;
}

/* The prompt's text, with marks unless it is plain. */
static int render_typed(const struct shoal_engine *en, const struct chat_template *template,
                        const struct chat *c, bool plain, struct buf *out, struct err *e)
{
    struct marker m = {.tokenizer = en->tokenizer, .plain = plain, .format = en->tool_format};
    struct chat other;
    arena_init(&m.arena, MAX_CONTEXT_BYTES);
    buf_init(&m.text, MAX_TEXT_BYTES);
    if (m.format == TOOL_FORMAT_GENERIC && chat_tools_used(c)) {
        other = chat_tools_as_text(&m.arena, c, en->no_system);
        c = &other;
    } else if (en->tools_in_system && chat_has_tools(c)) {
        other = chat_tools_in_system(&m.arena, c, &m.tools);
        c = &other;
    }
    struct value context = context_value(&m, c);
    int rc = m.arena.rc;
    if (rc == SHOAL_ELIMIT)
        err_set(e, rc, "the context of a chat is nested deeper than %d", MAX_DEPTH);
    else if (rc < 0)
        err_set(e, rc, "messages");
    else
        rc = chat_template_render_value(template, out, &context, e);
    if (rc == 0 && continues(c))
        rc = cut_behind(&m, &c->messages[c->n_messages - 1], out, e);
    buf_fini(&m.text);
    arena_fini(&m.arena);
    return rc;
}

/* The same, with the conversation's own template where it has one. */
static int render_chat(const struct shoal_engine *en, const struct chat *c, bool plain,
                       struct buf *out, struct err *e)
{
    struct chat_template *own = NULL;
    int rc = c->template && (en->kinds & SHOAL_KIND_GENERATE)
                 ? chat_template_parse(&own, c->template, strlen(c->template), e)
                 : chat_usable(en, e);
    if (rc == 0)
        rc = render_typed(en, own ? own : en->chat, c, plain, out, e);
    chat_template_destroy(own);
    return rc;
}

int chat_prompt_of(const struct shoal_engine *en, const struct chat *chat, char **text, size_t *n,
                   struct err *e)
{
    struct buf out;
    *text = NULL;
    *n = 0;
    buf_init(&out, MAX_PROMPT_BYTES);
    int rc = render_chat(en, chat, true, &out, e);
    if (rc == 0 && !(*text = buf_take(&out, n)))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the prompt");
    buf_fini(&out);
    return rc;
}

/* The tokens of a rendered prompt, unless rendering failed. */
static int take_tokens(const struct shoal_engine *en, int rendered, struct buf *text,
                       int32_t **tokens, size_t *n_tokens, struct err *e)
{
    struct tok_ids ids;
    tok_ids_init(&ids, prompt_limit_tokens(en));
    int rc = rendered < 0 ? rendered : prompt_limit_check(en, text->len, e);
    if (rc == 0)
        rc = prompt_limit_passed(en, encode(en, &ids, text->data, text->len, e), e);
    *tokens = rc == 0 ? ids.ids : NULL;
    *n_tokens = rc == 0 ? ids.n : 0;
    if (rc == 0)
        ids.ids = NULL;
    tok_ids_fini(&ids);
    return rc;
}

int chat_tokens_of(const struct shoal_engine *en, const struct chat *chat, int32_t **tokens,
                   size_t *n_tokens, struct err *e)
{
    struct buf text;
    buf_init(&text, MAX_PROMPT_BYTES);
    int rc = render_chat(en, chat, false, &text, e);
    rc = take_tokens(en, rc, &text, tokens, n_tokens, e);
    buf_fini(&text);
    return rc;
}

/* ---- a context in JSON, from a program that uses the library ---- */

static bool mark_text(void *ctx, const char **p, size_t *n)
{
    struct marker *m = ctx;
    const struct value v = marked_text(m, *p, *n);
    *p = v.text.p;
    *n = v.text.n;
    return m->arena.rc == 0;
}

int shoal_chat_tokens(const struct shoal_engine *en, const char *context_json, size_t n_json,
                      int32_t **tokens, size_t *n_tokens, struct err *e)
{
    struct buf text;
    struct err own;
    size_t unused;
    if (!e)
        e = &own;
    if (!n_tokens)
        n_tokens = &unused;
    *n_tokens = 0;
    int rc = arg_check(tokens, "tokens", e);
    if (rc < 0)
        return rc;
    *tokens = NULL;
    rc = arg_check(en, "engine", e);
    if (rc == 0)
        rc = arg_check(context_json, "context_json", e);
    if (rc < 0)
        return rc;
    struct marker m = {.tokenizer = en->tokenizer};
    arena_init(&m.arena, MAX_CONTEXT_BYTES);
    buf_init(&m.text, MAX_TEXT_BYTES);
    buf_init(&text, MAX_PROMPT_BYTES);
    rc = chat_render_json(en, &text, context_json, n_json, mark_text, &m, e);
    rc = take_tokens(en, rc, &text, tokens, n_tokens, e);
    buf_fini(&text);
    buf_fini(&m.text);
    arena_fini(&m.arena);
    return rc;
}
