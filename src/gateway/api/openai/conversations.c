/* conversations.c - see conversations.h.
 *
 * The JSON of an entry is the conversation's object with one more member, "items". */
#include "gateway/api/openai/conversations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "gateway/api/openai/response_input.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/api/tools_read.h"
#include "gateway/call/call.h"
#include "gateway/gw.h"
#include "wire/json_nul.h"
#include "wire/json_out.h"

#define PATH "/v1/conversations/"
#define MAX_METADATA_BYTES 16384u
#define MAX_LISTED 100

struct body {
    const cJSON *items, *metadata;
};

#define AT(member) offsetof(struct body, member)
const struct field conversations_fields[] = {
    {"items", FIELD_VALUE, AT(items), 0, 0, "messages and other items, as in 'input' of a response",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"},
    {"metadata", FIELD_VALUE, AT(metadata), 0, 0, "what the client wants to remember of it",
     "{\"type\":\"object\"}"}};
const size_t conversations_n_fields =
    sizeof(conversations_fields) / sizeof(conversations_fields[0]);

static const char *owner_of(const struct call *c)
{
    return c->client ? c->client->name : "";
}

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *conversations_named(const cJSON *body)
{
    const cJSON *v = get(body, "conversation");
    const char *id = cJSON_GetStringValue(cJSON_IsObject(v) ? get(v, "id") : v);
    return id && id[0] ? id : NULL;
}

/* ---- items ---- */

/* A fresh id that cannot be guessed: of the call, and of the item's place in it. */
static void make_id(const struct call *c, const char *prefix, uint32_t i, char out[64])
{
    char hex[2][17];
    const uint64_t salt = c->gl->gw->id_salt;
    const uint64_t h = hash_bytes(c->id, strlen(c->id), salt ^ c->start_ns ^ ((uint64_t)i << 32));
    hash_hex(hex[0], h);
    hash_hex(hex[1], hash_mix(h ^ salt));
    snprintf(out, 64, "%s%.16s%.16s", prefix, hex[0], hex[1]);
}

static const char *type_of(const cJSON *item)
{
    const char *type = cJSON_GetStringValue(get(item, "type"));
    return type ? type : "message";
}

/* A text as content of one part. */
static cJSON *content_of(const char *role, const char *text)
{
    cJSON *list = cJSON_CreateArray(), *part = cJSON_CreateObject();
    const bool ours = role && strcmp(role, "assistant") == 0;
    cJSON_AddStringToObject(part, "type", ours ? "output_text" : "input_text");
    cJSON_AddStringToObject(part, "text", text);
    if (ours)
        cJSON_AddItemToObject(part, "annotations", cJSON_CreateArray());
    cJSON_AddItemToArray(list, part);
    return list;
}

static void set_text(cJSON *object, const char *key, const char *text)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddStringToObject(object, key, text);
}

/* Every item has a type, a status, a list as content, and an id of ours. */
static cJSON *normal_item(const cJSON *given, const char *id)
{
    cJSON *item = cJSON_Duplicate(given, true);
    const char *type = type_of(given);
    const char *text = cJSON_GetStringValue(get(item, "content"));
    if (!item)
        return NULL;
    if (text && strcmp(type, "message") == 0) {
        cJSON *list = content_of(cJSON_GetStringValue(get(item, "role")), text);
        cJSON_DeleteItemFromObjectCaseSensitive(item, "content");
        cJSON_AddItemToObject(item, "content", list);
    }
    set_text(item, "type", type);
    set_text(item, "status", "completed");
    set_text(item, "id", id);
    return item;
}

/* Items of a client; NULL: out of memory. */
static cJSON *normal_items(const struct call *c, const cJSON *given)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *one;
    uint32_t i = 1;
    cJSON_ArrayForEach(one, given)
    {
        const char *type = type_of(one);
        char id[64];
        make_id(c, strcmp(type, "message") == 0 ? "msg_" : "item_", i++, id);
        cJSON_AddItemToArray(list, normal_item(one, id));
    }
    return list;
}

static cJSON *find_item(cJSON *items, const char *id)
{
    cJSON *one;
    cJSON_ArrayForEach(one, items)
    {
        const char *its = cJSON_GetStringValue(get(one, "id"));
        if (its && strcmp(its, id) == 0)
            return one;
    }
    return NULL;
}

/* Reads items as the input of a response is read; at least one. */
static int check_items(struct call *c, const cJSON *items, struct fields_error *e)
{
    struct request *r = call_request(c);
    if (!r)
        return 1; /* the call is answered */
    int rc = response_input_read_items(r, items, c->lenient, e);
    flow_give_request(&c->gl->flow, r);
    return rc;
}

/* ---- the store ---- */

static void fail_unknown(struct call *c, const char *id)
{
    call_fail(c, 404, NULL, NULL, "conversation_not_found",
              "there is no conversation '%.64s': it was not made, or it has expired", id);
}

/* rest: of the path, after the conversation's id. */
static void fail_rest(struct call *c, const char *rest)
{
    static const char items[] = "/items/";
    const size_t n = strlen(items);
    if (strncmp(rest, items, n) == 0)
        call_fail(c, 404, NULL, NULL, "item_not_found",
                  "there is no item '%.64s' in this conversation", rest + n);
    else
        call_fail(c, 404, NULL, NULL, "not_found", "there is nothing at %.100s", c->req->path);
}

/* NULL: the call is answered. */
static struct response_store *store_of(struct call *c)
{
    struct response_store *s = c->gl->gw->response_store;
    if (!s)
        call_fail(c, 400, NULL, NULL, "unsupported_parameter",
                  "conversations need stored responses: set 'responses.bytes' in the "
                  "configuration");
    return s;
}

/* cJSON_Delete; NULL: there is none. */
static cJSON *load(struct response_store *s, const char *id, const char *owner)
{
    const struct response_entry *e =
        response_entry_is_conversation(id) ? response_store_get(s, id, owner, clock_ns()) : NULL;
    cJSON *conversation = e ? json_nul_parse(e->json, e->json_bytes) : NULL;
    if (e)
        response_store_unref(s, e);
    return conversation;
}

static bool save(struct response_store *s, const char *id, const char *owner,
                 const cJSON *conversation)
{
    struct response_entry e = {.json = json_nul_print(conversation)};
    bool kept = false;
    if (e.json && strlen(id) < sizeof(e.id) && strlen(owner) < sizeof(e.owner)) {
        e.json_bytes = strlen(e.json);
        memcpy(e.id, id, strlen(id) + 1);
        memcpy(e.owner, owner, strlen(owner) + 1);
        kept = response_store_put(s, &e, clock_ns());
    }
    cJSON_free((void *)(uintptr_t)e.json);
    return kept;
}

/* What a handler works on. */
struct work {
    struct response_store *store;
    char id[RESPONSE_STORE_ID_BYTES];
    const char *rest; /* of the path, after the id: "" or "/..." */
    cJSON *conversation, *items;
};

/* Loads the conversation that the path names; `edits`: until end_work nobody else changes one.
 * False: the call is answered. */
static bool begin_work(struct call *c, struct work *w, bool edits)
{
    const char *path = c->req->path + strlen(PATH);
    const size_t n = strcspn(path, "/");
    *w = (struct work){.store = store_of(c), .rest = path + n};
    if (!w->store)
        return false;
    if (n < sizeof(w->id))
        memcpy(w->id, path, n);
    if (edits)
        response_store_lock_edits(w->store);
    w->conversation = load(w->store, w->id, owner_of(c));
    w->items = cJSON_GetObjectItemCaseSensitive(w->conversation, "items");
    if (w->items)
        return true;
    if (edits)
        response_store_unlock_edits(w->store);
    cJSON_Delete(w->conversation);
    fail_unknown(c, w->id);
    return false;
}

static void end_work(struct work *w, bool edits)
{
    if (edits)
        response_store_unlock_edits(w->store);
    cJSON_Delete(w->conversation);
}

/* ---- answers ---- */

static void put_json(struct call *c, const cJSON *v)
{
    char *text = json_nul_print(v);
    if (text)
        buf_puts(&c->out, text);
    else
        c->out.rc = SHOAL_ENOMEM;
    cJSON_free(text);
}

/* The object without its items. */
static void answer_conversation(struct call *c, cJSON *conversation)
{
    cJSON_DeleteItemFromObjectCaseSensitive(conversation, "items");
    put_json(c, conversation);
    call_json(c, 200);
}

static void put_item_id(struct json_out *j, const char *key, const cJSON *item)
{
    const char *id = cJSON_GetStringValue(get(item, "id"));
    json_out_key(j, key);
    id ? json_out_str(j, id) : json_out_null(j);
}

/* data: its items in their order. */
static void answer_list(struct call *c, const cJSON *data, bool more)
{
    struct json_out j = json_out_make(&c->out);
    const int n = cJSON_GetArraySize(data);
    char *text = json_nul_print(data);
    json_out_object(&j);
    json_out_member_str(&j, "object", "list");
    json_out_member_raw(&j, "data", text ? text : "[]", text ? strlen(text) : 2);
    put_item_id(&j, "first_id", n > 0 ? cJSON_GetArrayItem(data, 0) : NULL);
    put_item_id(&j, "last_id", n > 0 ? cJSON_GetArrayItem(data, n - 1) : NULL);
    json_out_member_bool(&j, "has_more", more);
    json_out_object_end(&j);
    if (!text)
        c->out.rc = SHOAL_ENOMEM;
    cJSON_free(text);
    call_json(c, 200);
}

/* ---- handlers ---- */

/* n fields from `table` on.  False: the call is answered. */
static bool read_body(struct call *c, const struct field *table, size_t n, struct body *b)
{
    struct fields_error e = {{0}, {0}, NULL};
    const bool ok = fields_read(table, n, c->json, b, c->lenient, &e) == 0;
    if (!ok)
        call_fail_fields(c, &e);
    return ok;
}

/* 0: `out` holds a copy of the body's metadata, or an empty object.  Else the call is answered. */
static int read_metadata(struct call *c, const cJSON *v, cJSON **out)
{
    char *text = v ? cJSON_PrintUnformatted(v) : NULL;
    const size_t n = text ? strlen(text) : 0;
    cJSON_free(text);
    *out = NULL;
    if ((v && !cJSON_IsObject(v)) || n > MAX_METADATA_BYTES) {
        call_fail(c, 400, NULL, "metadata", "invalid_value",
                  "'metadata' must be an object of at most %u bytes", MAX_METADATA_BYTES);
        return -1;
    }
    *out = n > 0 ? cJSON_Duplicate(v, true) : cJSON_CreateObject();
    if (!*out)
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
    return *out ? 0 : -1;
}

/* Checks the body's items.  False: the call is answered. */
static bool check_given(struct call *c, bool required, const cJSON *items)
{
    struct fields_error e = {{0}, {0}, NULL};
    if (!required && (!items || (cJSON_IsArray(items) && !items->child)))
        return true;
    int rc = check_items(c, items, &e);
    if (rc < 0)
        call_fail_fields(c, &e);
    return rc == 0;
}

static void fail_full(struct call *c)
{
    call_fail(c, 413, NULL, NULL, "conversation_too_large",
              "the conversation does not fit into 'responses.bytes' of the configuration");
}

void conversations_create(struct call *c)
{
    struct response_store *s = store_of(c);
    struct body b = {.items = NULL};
    cJSON *metadata;
    char id[64];
    if (!s || !read_body(c, conversations_fields, conversations_n_fields, &b) ||
        !check_given(c, false, b.items) || read_metadata(c, b.metadata, &metadata) < 0)
        return;
    make_id(c, RESPONSE_ENTRY_CONVERSATION, 0, id);
    cJSON *made = cJSON_CreateObject();
    cJSON_AddStringToObject(made, "id", id);
    cJSON_AddStringToObject(made, "object", "conversation");
    cJSON_AddNumberToObject(made, "created_at", (double)time(NULL));
    cJSON_AddItemToObject(made, "metadata", metadata);
    cJSON_AddItemToObject(made, "items", normal_items(c, b.items));
    const bool kept = save(s, id, owner_of(c), made);
    if (kept)
        answer_conversation(c, made);
    else
        fail_full(c);
    cJSON_Delete(made);
}

static void add_items(struct call *c, struct work *w, const cJSON *given)
{
    cJSON *added = normal_items(c, given), *copy = cJSON_Duplicate(added, true);
    while (copy && copy->child)
        cJSON_AddItemToArray(w->items, cJSON_DetachItemFromArray(copy, 0));
    cJSON_Delete(copy);
    if (save(w->store, w->id, owner_of(c), w->conversation))
        answer_list(c, added, false);
    else
        fail_full(c);
    cJSON_Delete(added);
}

void conversations_post(struct call *c)
{
    struct work w;
    struct body b = {.items = NULL};
    cJSON *metadata = NULL;
    const bool items = str_ends_with(c->req->path, "/items");
    if (!read_body(c, conversations_fields + !items, 1, &b) ||
        (items ? !check_given(c, true, b.items) : read_metadata(c, b.metadata, &metadata) < 0))
        return;
    if (!begin_work(c, &w, true)) {
        cJSON_Delete(metadata);
        return;
    }
    if (items && strcmp(w.rest, "/items") == 0) {
        add_items(c, &w, b.items);
    } else if (w.rest[0]) {
        fail_rest(c, w.rest);
    } else {
        cJSON_ReplaceItemInObjectCaseSensitive(w.conversation, "metadata", metadata);
        metadata = NULL;
        if (save(w.store, w.id, owner_of(c), w.conversation))
            answer_conversation(c, w.conversation);
        else
            fail_full(c);
    }
    cJSON_Delete(metadata);
    end_work(&w, true);
}

/* Which items a list shows: `after` an item, at most `limit`, the last first unless `order` is asc.
 */
static void list_items(struct call *c, struct work *w)
{
    char after[64] = "", limit[16] = "20", order[8] = "desc";
    (void)http_query(c->req, "after", after, sizeof(after));
    (void)http_query(c->req, "limit", limit, sizeof(limit));
    (void)http_query(c->req, "order", order, sizeof(order));
    const long most = strtol(limit, NULL, 10);
    const bool desc = strcmp(order, "asc") != 0;
    if (most < 1 || most > MAX_LISTED) {
        call_fail(c, 400, NULL, "limit", "invalid_value", "'limit' must be a number from 1 to %d",
                  MAX_LISTED);
        return;
    }
    if (desc && strcmp(order, "desc") != 0) {
        call_fail(c, 400, NULL, "order", "invalid_value", "'order' must be asc or desc");
        return;
    }
    const cJSON *last = after[0] ? find_item(w->items, after) : NULL;
    if (after[0] && !last) {
        call_fail(c, 404, NULL, "after", "item_not_found",
                  "there is no item '%.64s' in this conversation", after);
        return;
    }
    const int n = cJSON_GetArraySize(w->items);
    cJSON *data = cJSON_CreateArray();
    bool begun = !last, more = false;
    for (int i = 0; i < n; i++) {
        const cJSON *one = cJSON_GetArrayItem(w->items, desc ? n - 1 - i : i);
        if (begun && cJSON_GetArraySize(data) == most) {
            more = true;
            break;
        }
        if (begun)
            cJSON_AddItemToArray(data, cJSON_Duplicate(one, true));
        begun |= one == last;
    }
    answer_list(c, data, more);
    cJSON_Delete(data);
}

void conversations_get(struct call *c)
{
    static const char items[] = "/items/";
    struct work w;
    if (!begin_work(c, &w, false))
        return;
    const cJSON *one = strncmp(w.rest, items, strlen(items)) == 0
                           ? find_item(w.items, w.rest + strlen(items))
                           : NULL;
    if (!w.rest[0]) {
        answer_conversation(c, w.conversation);
    } else if (strcmp(w.rest, "/items") == 0) {
        list_items(c, &w);
    } else if (one) {
        put_json(c, one);
        call_json(c, 200);
    } else {
        fail_rest(c, w.rest);
    }
    end_work(&w, false);
}

static void answer_deleted(struct call *c, const char *id)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "id", id);
    json_out_member_str(&j, "object", "conversation.deleted");
    json_out_member_bool(&j, "deleted", true);
    json_out_object_end(&j);
    call_json(c, 200);
}

void conversations_delete(struct call *c)
{
    static const char items[] = "/items/";
    struct work w;
    if (!begin_work(c, &w, true))
        return;
    cJSON *one = strncmp(w.rest, items, strlen(items)) == 0
                     ? find_item(w.items, w.rest + strlen(items))
                     : NULL;
    if (!w.rest[0]) {
        (void)response_store_delete(w.store, w.id, owner_of(c), clock_ns());
        answer_deleted(c, w.id);
    } else if (one) {
        cJSON_Delete(cJSON_DetachItemViaPointer(w.items, one));
        (void)save(w.store, w.id, owner_of(c), w.conversation); /* it became smaller */
        answer_conversation(c, w.conversation);
    } else {
        fail_rest(c, w.rest);
    }
    end_work(&w, true);
}

/* ---- for responses ---- */

int conversations_read(struct call *c, const char *id, struct request *r,
                       struct response_entry *out, struct fields_error *e)
{
    struct response_store *s = c->gl->gw->response_store;
    cJSON *conversation = s ? load(s, id, owner_of(c)) : NULL;
    const cJSON *items = get(conversation, "items");
    int rc = items ? 0 : SHOAL_ENOTFOUND;
    *out = (struct response_entry){.n_messages = 0};
    r->nul_hidden = true;
    if (items && items->child)
        rc = response_input_read_items(r, items, true, e);
    r->nul_hidden = false;
    if (rc == 0 && items->child) {
        out->messages = r->generate.chat.messages;
        out->n_messages = r->generate.chat.n_messages;
        r->input_bytes = 0; /* responses_read counts them */
    }
    cJSON_Delete(conversation);
    return rc;
}

const char *conversations_input(struct request *r, const cJSON *input)
{
    if (!cJSON_IsString(input))
        return tools_read_json(r, input, NULL);
    cJSON *list = cJSON_CreateArray(), *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "type", "message");
    cJSON_AddStringToObject(item, "role", "user");
    cJSON_AddItemToObject(item, "content", content_of("user", input->valuestring));
    cJSON_AddItemToArray(list, item);
    const char *text = tools_read_json(r, list, NULL);
    cJSON_Delete(list);
    return text;
}

void conversations_append(struct call *c, const char *id, const char *items, const char *response,
                          size_t response_bytes)
{
    struct response_store *s = c->gl->gw->response_store;
    cJSON *given = items ? cJSON_Parse(items) : NULL;
    cJSON *answer = json_nul_parse(response, response_bytes);
    cJSON *output = cJSON_GetObjectItemCaseSensitive(answer, "output");
    cJSON *added = normal_items(c, given);
    response_store_lock_edits(s);
    cJSON *conversation = load(s, id, owner_of(c)); /* it may have been deleted meanwhile */
    cJSON *list = cJSON_GetObjectItemCaseSensitive(conversation, "items");
    while (list && added && added->child)
        cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(added, 0));
    while (list && output && output->child)
        cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(output, 0));
    if (list)
        (void)save(s, id, owner_of(c), conversation); /* one that is too large stays as it was */
    response_store_unlock_edits(s);
    cJSON_Delete(conversation);
    cJSON_Delete(added);
    cJSON_Delete(answer);
    cJSON_Delete(given);
}
