/* conversation.c - see conversation.h. */
#include "cmd/local/conversation.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/room.h"
#include "base/utf8.h"
#include "engine/chat/chat_tokens.h"
#include "wire/json_out.h"

#define MAX_CONTEXT_BYTES ((size_t)64 << 20)

void conversation_init(struct conversation *c, const struct shoal_engine *engine)
{
    *c = (struct conversation){.engine = engine};
}

static void forget_seen(struct conversation *c)
{
    mem_free(c->seen_text);
    mem_free(c->seen);
    c->seen_text = NULL;
    c->seen = NULL;
    c->seen_bytes = c->n_seen = 0;
}

static void remove_at(struct conversation *c, size_t i)
{
    mem_free(c->messages[i].text);
    memmove(&c->messages[i], &c->messages[i + 1], (c->n - i - 1) * sizeof(*c->messages));
    c->n--;
}

void conversation_fini(struct conversation *c)
{
    while (c->n > 0)
        remove_at(c, c->n - 1);
    mem_free(c->messages);
    forget_seen(c);
    shoal_free(c->asked_text);
    *c = (struct conversation){0};
}

static bool has_system(const struct conversation *c)
{
    return c->n > 0 && strcmp(c->messages[0].role, "system") == 0;
}

void conversation_reset(struct conversation *c)
{
    size_t keep = has_system(c) ? 1 : 0;
    while (c->n > keep)
        remove_at(c, c->n - 1);
    forget_seen(c);
}

static int insert_at(struct conversation *c, size_t i, const char *role, const char *text, size_t n,
                     struct err *e)
{
    char *copy = mem_strndup(text, n);
    if (!copy || !room_make(&c->messages, &c->cap, c->n, sizeof(*c->messages), 16)) {
        mem_free(copy);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a message of %zu bytes", n);
    }
    memmove(&c->messages[i + 1], &c->messages[i], (c->n - i) * sizeof(*c->messages));
    c->messages[i] = (struct conversation_message){role, copy};
    c->n++;
    return 0;
}

int conversation_system(struct conversation *c, const char *text, struct err *e)
{
    if (has_system(c))
        remove_at(c, 0);
    return text && text[0] ? insert_at(c, 0, "system", text, strlen(text), e) : 0;
}

int conversation_add(struct conversation *c, const char *role, const char *text, size_t n,
                     struct err *e)
{
    return insert_at(c, c->n, role, text, n, e);
}

void conversation_pop(struct conversation *c)
{
    if (c->n > 0)
        remove_at(c, c->n - 1);
}

bool conversation_forget(struct conversation *c)
{
    size_t first = has_system(c) ? 1 : 0;
    if (c->n - first < 2)
        return false;
    remove_at(c, first);
    while (c->n > first && strcmp(c->messages[first].role, "user") != 0)
        remove_at(c, first);
    return true;
}

void conversation_json(const struct conversation *c, struct buf *b)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_array(&j, "messages");
    for (size_t i = 0; i < c->n; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "role", c->messages[i].role);
        json_out_member_str(&j, "content", c->messages[i].text);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static int render(const struct conversation *c, char **text, size_t *n, struct err *e)
{
    struct arena a;
    arena_init(&a, MAX_CONTEXT_BYTES);
    struct chat_message *list = arena_zalloc_n(&a, c->n, sizeof(*list));
    for (size_t i = 0; list && i < c->n; i++) {
        const char *from = c->messages[i].text;
        list[i].role = c->messages[i].role;
        list[i].content = utf8_repaired(&a, from, strlen(from), &list[i].content_bytes);
    }
    const struct chat chat = {.messages = list,
                              .n_messages = (uint32_t)c->n,
                              .vars = c->vars,
                              .n_vars = (uint32_t)c->n_vars};
    int rc =
        a.rc < 0 ? err_set(e, a.rc, "conversation") : chat_prompt_of(c->engine, &chat, text, n, e);
    arena_fini(&a);
    return rc;
}

static int encode(const struct conversation *c, const char *text, size_t n, unsigned flags,
                  int32_t **tokens, size_t *n_tokens, struct err *e)
{
    struct err se = {0};
    int rc =
        shoal_tokenize(c->engine, text, n, SHOAL_TEXT_PARSE_SPECIAL | flags, tokens, n_tokens, &se);
    return rc < 0 ? err_set(e, rc, "%s", se.msg) : 0;
}

/* Special tokens have no text unless requested. */
static bool is_special(const struct conversation *c, int32_t token)
{
    char *text = NULL;
    size_t n = 1;
    bool special = shoal_detokenize(c->engine, &token, 1, 0, &text, &n, NULL) == 0 && n == 0;
    shoal_free(text);
    return special;
}

/* Joins head and tail in a new list; frees both. */
static int join(int32_t *head, size_t n_head, int32_t *tail, size_t n_tail, int32_t **tokens,
                size_t *n, struct err *e)
{
    int32_t *all = mem_realloc(head, (n_head + n_tail + 1) * sizeof(*all));
    if (!all) {
        mem_free(head);
        shoal_free(tail);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a prompt of %zu tokens",
                       n_head + n_tail);
    }
    if (n_tail > 0) /* otherwise tail may be NULL */
        memcpy(all + n_head, tail, n_tail * sizeof(*all));
    shoal_free(tail);
    *tokens = all;
    *n = n_head + n_tail;
    return 0;
}

/* Encodes the whole text.  Templates either contain the BOS or leave it to the tokenizer; only
 * one is kept.  The EOS that some tokenizers add is removed, since the answer follows the
 * prompt. */
static int encode_whole(const struct conversation *c, const char *text, size_t n, int32_t **tokens,
                        size_t *n_tokens, struct err *e)
{
    int32_t *with = NULL, *bare = NULL;
    size_t n_with = 0, n_bare = 0;
    int rc = encode(c, text, n, 0, &bare, &n_bare, e);
    if (rc == 0)
        rc = encode(c, text, n, SHOAL_TEXT_ADD_SPECIAL, &with, &n_with, e);
    if (rc < 0 || n_with == 0 || (n_bare > 0 && with[0] == bare[0])) {
        shoal_free(with);
        *tokens = bare;
        *n_tokens = n_bare;
        return rc;
    }
    return join(with, 1, bare, n_bare, tokens, n_tokens, e);
}

/* If the text continues the seen text with a special token (so that splitting there changes
 * nothing), keeps the old tokens, whose KV pages are then reused.  1: done. */
static int encode_rest(const struct conversation *c, int32_t **tokens, size_t *n, struct err *e)
{
    int32_t *head, *tail = NULL;
    size_t n_tail = 0;
    if (c->n_seen == 0 || c->asked_bytes <= c->seen_bytes ||
        memcmp(c->asked_text, c->seen_text, c->seen_bytes) != 0)
        return 0;
    int rc = encode(c, c->asked_text + c->seen_bytes, c->asked_bytes - c->seen_bytes, 0, &tail,
                    &n_tail, e);
    if (rc < 0 || n_tail == 0 || !is_special(c, tail[0]) ||
        !(head = mem_alloc(c->n_seen * sizeof(*head)))) {
        shoal_free(tail);
        return rc;
    }
    memcpy(head, c->seen, c->n_seen * sizeof(*head));
    rc = join(head, c->n_seen, tail, n_tail, tokens, n, e);
    return rc < 0 ? rc : 1;
}

int conversation_prompt(struct conversation *c, int32_t **tokens, size_t *n, struct err *e)
{
    *tokens = NULL;
    *n = 0;
    shoal_free(c->asked_text);
    c->asked_text = NULL;
    int rc = render(c, &c->asked_text, &c->asked_bytes, e);
    if (rc == 0)
        rc = encode_rest(c, tokens, n, e);
    if (rc == 0)
        rc = encode_whole(c, c->asked_text, c->asked_bytes, tokens, n, e);
    return rc < 0 ? rc : 0;
}

int conversation_answer(struct conversation *c, const int32_t *prompt, size_t n_prompt,
                        const int32_t *tokens, size_t n_tokens, const char *text, size_t n,
                        struct err *e)
{
    forget_seen(c);
    c->seen_text = mem_alloc(c->asked_bytes + n + 1);
    c->seen = mem_alloc((n_prompt + n_tokens + 1) * sizeof(*c->seen));
    if (c->seen_text && c->seen && c->asked_text) {
        /* a template may render nothing, and a model may answer nothing: then a pointer is NULL */
        memcpy(c->seen_text, c->asked_text, c->asked_bytes);
        if (n)
            memcpy(c->seen_text + c->asked_bytes, text, n);
        if (n_prompt)
            memcpy(c->seen, prompt, n_prompt * sizeof(*c->seen));
        if (n_tokens)
            memcpy(c->seen + n_prompt, tokens, n_tokens * sizeof(*c->seen));
        c->seen_bytes = c->asked_bytes + n;
        c->n_seen = n_prompt + n_tokens;
    } else {
        forget_seen(c); /* costs only time */
    }
    return conversation_add(c, "assistant", text, n, e);
}
