/* realtime_items.c - see realtime_items.h. */
#include "gateway/realtime/realtime_items.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static const char *text_of(const cJSON *j, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, key));
}

static bool is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

void realtime_items_init(struct realtime_items *x)
{
    *x = (struct realtime_items){.list = NULL};
}

void realtime_items_fini(struct realtime_items *x)
{
    cJSON_Delete(x->list);
    x->list = NULL;
}

void realtime_items_id(struct realtime_items *x, char *out, size_t cap)
{
    snprintf(out, cap, "item_%08" PRIx32 "%08" PRIx64, x->salt, ++x->n_made);
}

/* The words of a part of a message; NULL: it has none. */
static const char *words_of(const cJSON *part)
{
    const char *text = text_of(part, "text");
    return text ? text : text_of(part, "transcript");
}

static const char *check_message(const cJSON *item)
{
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(item, "content"), *part;
    const char *role = text_of(item, "role");
    if (!is(role, "user") && !is(role, "assistant") && !is(role, "system"))
        return "the role of a message must be user, assistant or system";
    if (!cJSON_IsArray(content) || cJSON_GetArraySize(content) == 0)
        return "the content of a message must be a list of parts";
    cJSON_ArrayForEach(part, content)
    {
        if (is(text_of(part, "type"), "input_audio") && !words_of(part))
            return "sound is sent with input_audio_buffer.append: a message takes text";
        if (!words_of(part))
            return "a part of a message must be a text";
    }
    return NULL;
}

static const char *check(const cJSON *item)
{
    const char *type = text_of(item, "type"), *id = text_of(item, "id");
    if (cJSON_HasObjectItem(item, "id") && (!id || !id[0] || strlen(id) > 63))
        return "the id of an item must have 1 to 63 bytes";
    if (is(type, "message"))
        return check_message(item);
    if (is(type, "function_call"))
        return text_of(item, "call_id") && text_of(item, "name") && text_of(item, "arguments")
                   ? NULL
                   : "a function_call needs call_id, name and arguments";
    if (is(type, "function_call_output"))
        return text_of(item, "call_id") && text_of(item, "output")
                   ? NULL
                   : "a function_call_output needs call_id and output";
    return "the type of an item must be message, function_call or function_call_output";
}

const cJSON *realtime_items_find(const struct realtime_items *x, const char *id)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, x->list) if (is(text_of(v, "id"), id)) return v;
    return NULL;
}

const char *realtime_items_before(const struct realtime_items *x, const cJSON *item)
{
    return x->list && item != x->list->child ? text_of(item->prev, "id") : NULL;
}

void realtime_items_remove(struct realtime_items *x, const cJSON *item)
{
    cJSON *v = NULL;
    cJSON_ArrayForEach(v, x->list) if (v == item) break;
    if (v)
        cJSON_Delete(cJSON_DetachItemViaPointer(x->list, v));
}

/* Takes item; false: out of memory. */
static bool put(struct realtime_items *x, cJSON *item, int at)
{
    if (!x->list)
        x->list = cJSON_CreateArray();
    if (!item || !x->list || !cJSON_InsertItemInArray(x->list, at, item)) {
        cJSON_Delete(item);
        return false;
    }
    if (cJSON_GetArraySize(x->list) > REALTIME_MAX_ITEMS && x->list->child != item)
        cJSON_DeleteItemFromArray(x->list, 0);
    return true;
}

static bool set(cJSON *item, const char *key, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(item, key);
    return cJSON_AddStringToObject(item, key, value) != NULL;
}

const char *realtime_items_add(struct realtime_items *x, const cJSON *item, const char *behind,
                               const cJSON **out)
{
    const char *wrong = check(item), *own = text_of(item, "id");
    char id[64], *text = wrong ? NULL : cJSON_PrintUnformatted(item);
    const bool big = text && strlen(text) > REALTIME_MAX_ITEM_BYTES;
    int at = cJSON_GetArraySize(x->list), i = 0;
    const cJSON *v;
    cJSON_free(text);
    if (wrong)
        return wrong;
    if (big)
        return "an item has at most 64 KiB";
    if (own && realtime_items_find(x, own))
        return "there is an item with this id";
    if (behind && !is(behind, "root") && !realtime_items_find(x, behind))
        return "there is no item with the id previous_item_id";
    if (behind && is(behind, "root"))
        at = 0;
    cJSON_ArrayForEach(v, x->list)
    {
        i++;
        if (behind && is(text_of(v, "id"), behind))
            at = i;
    }
    realtime_items_id(x, id, sizeof(id));
    cJSON *copy = cJSON_Duplicate(item, true);
    if (!copy || !set(copy, "id", own ? own : id) || !set(copy, "object", "realtime.item") ||
        !set(copy, "status", "completed")) {
        cJSON_Delete(copy);
        return "out of memory";
    }
    if (!put(x, copy, at))
        return "out of memory";
    *out = copy;
    return NULL;
}

static cJSON *new_item(const char *id, const char *type)
{
    cJSON *item = cJSON_CreateObject();
    if (item && set(item, "id", id) && set(item, "object", "realtime.item") &&
        set(item, "type", type) && set(item, "status", "completed"))
        return item;
    cJSON_Delete(item);
    return NULL;
}

const cJSON *realtime_items_say(struct realtime_items *x, const char *id, const char *role,
                                const char *part, const char *key, const char *text)
{
    cJSON *item = new_item(id, "message"), *content = cJSON_CreateArray(),
          *one = cJSON_CreateObject();
    bool ok = item && content && one && set(item, "role", role) && set(one, "type", part) &&
              set(one, key, text);
    if (ok && cJSON_AddItemToArray(content, one)) {
        one = NULL;
        ok = cJSON_AddItemToObject(item, "content", content);
        content = ok ? NULL : content;
    }
    cJSON_Delete(one);
    cJSON_Delete(content);
    if (!ok) {
        cJSON_Delete(item);
        return NULL;
    }
    return put(x, item, cJSON_GetArraySize(x->list)) ? item : NULL;
}

const cJSON *realtime_items_call(struct realtime_items *x, const char *id, const char *call_id,
                                 const char *name, const char *arguments)
{
    cJSON *item = new_item(id, "function_call");
    if (!item || !set(item, "call_id", call_id) || !set(item, "name", name) ||
        !set(item, "arguments", arguments)) {
        cJSON_Delete(item);
        return NULL;
    }
    return put(x, item, cJSON_GetArraySize(x->list)) ? item : NULL;
}

/* ---- as a chat ---- */

/* The words of all parts, in b. */
static const char *joined(const cJSON *content, struct buf *b)
{
    const cJSON *part;
    cJSON_ArrayForEach(part, content)
    {
        const char *words = words_of(part);
        if (words && b->len > 0)
            buf_putc(b, ' ');
        if (words)
            buf_puts(b, words);
    }
    return b->rc == 0 ? buf_str(b) : NULL;
}

static cJSON *message(const char *role, const char *text)
{
    cJSON *m = cJSON_CreateObject();
    if (m && text && set(m, "role", role) && set(m, "content", text))
        return m;
    cJSON_Delete(m);
    return NULL;
}

/* {"role": "assistant", "tool_calls": [{"id": ..., "type": "function", "function": {...}}]} */
static cJSON *message_of_call(const cJSON *item)
{
    cJSON *m = cJSON_CreateObject(), *call = NULL, *f = NULL;
    cJSON *calls =
        m && set(m, "role", "assistant") ? cJSON_AddArrayToObject(m, "tool_calls") : NULL;
    if (calls && (call = cJSON_CreateObject()) && !cJSON_AddItemToArray(calls, call)) {
        cJSON_Delete(call);
        call = NULL;
    }
    if (call && set(call, "id", text_of(item, "call_id")) && set(call, "type", "function"))
        f = cJSON_AddObjectToObject(call, "function");
    if (f && set(f, "name", text_of(item, "name")) &&
        set(f, "arguments", text_of(item, "arguments")))
        return m;
    cJSON_Delete(m);
    return NULL;
}

static cJSON *message_of(const cJSON *item)
{
    const char *type = text_of(item, "type");
    if (is(type, "function_call"))
        return message_of_call(item);
    if (is(type, "function_call_output")) {
        cJSON *m = message("tool", text_of(item, "output"));
        if (m && set(m, "tool_call_id", text_of(item, "call_id")))
            return m;
        cJSON_Delete(m);
        return NULL;
    }
    struct buf b;
    buf_init(&b, 2 * REALTIME_MAX_ITEM_BYTES);
    cJSON *m = message(text_of(item, "role"),
                       joined(cJSON_GetObjectItemCaseSensitive(item, "content"), &b));
    buf_fini(&b);
    return m;
}

cJSON *realtime_items_messages(const struct realtime_items *x, const char *instructions)
{
    cJSON *out = cJSON_CreateArray();
    const cJSON *v;
    bool ok = out != NULL;
    if (ok && instructions && instructions[0]) {
        cJSON *m = message("system", instructions);
        ok = m && cJSON_AddItemToArray(out, m);
    }
    cJSON_ArrayForEach(v, x->list)
    {
        cJSON *m = ok ? message_of(v) : NULL;
        ok = ok && m && cJSON_AddItemToArray(out, m);
    }
    if (ok)
        return out;
    cJSON_Delete(out);
    return NULL;
}

const char *realtime_items_last_user(const struct realtime_items *x)
{
    const char *found = "";
    const cJSON *v, *part;
    cJSON_ArrayForEach(v, x->list)
    {
        if (!is(text_of(v, "role"), "user"))
            continue;
        cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(v, "content")) if (words_of(part))
            found = words_of(part);
    }
    return found;
}
