/* history.c - see history.h. */
#include "knowledge/history.h"

#include <string.h>

#include "store/chunk.h"
#include "wire/json_nul.h"
#include "wire/json_out.h"

#define MAX_BYTES ((size_t)16 << 20)
#define MESSAGE_TOKENS 4u /* tokens that the template adds to each message */

int history_read(struct history *h, const char *text, size_t n, struct arena *a, struct err *e)
{
    const cJSON *m;
    int rc = 0;
    *h = (struct history){.n = 0};
    if (n > MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "a conversation of %zu bytes is too large: at most %zu", n,
                       MAX_BYTES);
    cJSON *j = json_nul_parse(text, n);
    if (!cJSON_IsObject(j)) {
        cJSON_Delete(j);
        return err_set(e, SHOAL_EFORMAT, "conversation is not a JSON object");
    }
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(j, "messages");
    int many = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || many > (int)HISTORY_MAX_MESSAGES) {
        cJSON_Delete(j);
        return err_set(e, SHOAL_EFORMAT, "a stored conversation is damaged");
    }
    const char *note = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, "note"));
    h->note = note ? arena_copy(a, note, strlen(note) + 1) : NULL;
    h->messages = arena_zalloc_n(a, (size_t)many + 1, sizeof(*h->messages));
    cJSON_ArrayForEach(m, list)
    {
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "role"));
        const char *content = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "content"));
        if (!role || !content)
            rc = err_set(e, SHOAL_EFORMAT, "a stored conversation is damaged");
        if (rc < 0 || !h->messages)
            break;
        struct chat_message *to = &h->messages[h->n++];
        to->role = arena_copy(a, role, strlen(role) + 1);
        to->content = json_nul_text(a, content, strlen(content), &to->content_bytes);
    }
    cJSON_Delete(j);
    return rc == 0 && a->rc < 0 ? err_set(e, a->rc, "out of memory for a conversation") : rc;
}

void history_write(const struct history *h, struct buf *out)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    if (h->note)
        json_out_member_str(&j, "note", h->note);
    json_out_member_array(&j, "messages");
    for (uint32_t i = 0; i < h->n; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "role", h->messages[i].role);
        json_out_member_strn(&j, "content", h->messages[i].content ? h->messages[i].content : "",
                             h->messages[i].content_bytes);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
}

static bool is_role(const struct chat_message *m, const char *role)
{
    return strcmp(m->role, role) == 0;
}

static bool is_system(const struct chat_message *m)
{
    return is_role(m, "system") || is_role(m, "developer");
}

int history_join(struct history *to, const struct history *old, const struct chat_message *add,
                 uint32_t n_add, struct arena *a, struct err *e)
{
    const struct chat_message *lead = NULL;
    struct chat_message *list = arena_zalloc_n(a, (size_t)old->n + n_add + 1, sizeof(*list));
    uint32_t n = 0;
    if (!list)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a conversation");
    for (uint32_t i = 0; i < old->n; i++)
        lead = is_system(&old->messages[i]) ? &old->messages[i] : lead;
    for (uint32_t i = 0; i < n_add; i++)
        lead = is_system(&add[i]) ? &add[i] : lead;
    if (lead)
        list[n++] = *lead;
    for (uint32_t i = 0; i < old->n; i++)
        if (!is_system(&old->messages[i]))
            list[n++] = old->messages[i];
    for (uint32_t i = 0; i < n_add; i++)
        if (!is_system(&add[i]))
            list[n++] = add[i];
    *to = (struct history){list, n, old->note};
    return 0;
}

static uint32_t tokens_of(const struct chat_message *m)
{
    uint32_t n = MESSAGE_TOKENS;
    for (size_t i = 0, k; i < m->content_bytes; i = k + 1) {
        for (k = i; k < m->content_bytes && m->content[k] != ' ' && m->content[k] != '\n'; k++)
            ;
        n += k > i ? chunk_guess(m->content + i, k - i) : 0;
    }
    return n;
}

uint32_t history_excess(const struct history *h, uint32_t max_tokens, uint32_t keep)
{
    uint64_t sum = 0;
    uint32_t from = h->n > 0 && is_system(&h->messages[0]) ? 1 : 0, drop = 0;
    for (uint32_t i = 0; i < h->n; i++)
        sum += tokens_of(&h->messages[i]);
    uint32_t most = h->n > from + keep ? h->n - from - keep : 0;
    while (drop < most && (sum > max_tokens || h->n - drop > HISTORY_MAX_MESSAGES ||
                           (drop > 0 && !is_role(&h->messages[from + drop], "user"))))
        sum -= tokens_of(&h->messages[from + drop++]);
    return drop;
}

void history_drop(struct history *h, uint32_t n)
{
    const uint32_t from = h->n > 0 && is_system(&h->messages[0]) ? 1 : 0;
    memmove(h->messages + from, h->messages + from + n, (h->n - from - n) * sizeof(*h->messages));
    h->n -= n;
}

void history_trim(struct history *h, uint32_t max_tokens, uint32_t keep)
{
    history_drop(h, history_excess(h, max_tokens, keep));
}

void history_tell(const struct history *h, uint32_t n, struct buf *out)
{
    const uint32_t from = h->n > 0 && is_system(&h->messages[0]) ? 1 : 0;
    if (h->note)
        buf_printf(out, "%s\n", h->note);
    for (uint32_t i = from; i < from + n; i++) {
        const struct chat_message *m = &h->messages[i];
        buf_puts(out, is_role(m, "assistant") ? "Assistant: " : "User: ");
        buf_put(out, m->content, m->content_bytes);
        buf_putc(out, '\n');
    }
}

int history_use_note(struct history *h, struct arena *a, struct err *e)
{
    const bool has = h->n > 0 && is_system(&h->messages[0]);
    if (!h->note)
        return 0;
    const char *text = arena_printf(a, "%.*s%s%s%s", has ? (int)h->messages[0].content_bytes : 0,
                                    has ? h->messages[0].content : "", has ? "\n\n" : "",
                                    "What was said earlier in this conversation: ", h->note);
    if (!text || a->rc < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a conversation");
    if (!has) {
        memmove(h->messages + 1, h->messages, h->n * sizeof(*h->messages));
        h->messages[0] = (struct chat_message){.role = "system"};
        h->n++;
    }
    h->messages[0].content = text;
    h->messages[0].content_bytes = strlen(text);
    return 0;
}
