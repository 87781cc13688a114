/* ollama_models.c - Ollama's lists of models: /api/tags, /api/ps, /api/show, /api/version. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cluster/members.h"
#include "flow/flow_run.h"
#include "gateway/api/ollama/ollama.h"
#include "gateway/api/model_profiles.h"
#include "gateway/call/call.h"
#include "wire/json_out.h"

#define MAX_MODELFILE_BYTES ((size_t)1 << 20)

struct listing {
    const struct call *call;
    struct json_out j;
    bool loaded_only;
    const char *name;
    size_t name_bytes; /* bytes of it that count */
    bool found;
    struct gw *gw;
};

static void put_details(struct json_out *j, const struct registry_model *m)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    char size[32] = "";
    if (m->slot->engine)
        shoal_engine_info(m->slot->engine, &info);
    if (info.n_params)
        snprintf(size, sizeof(size), "%.1fM", (double)info.n_params / 1e6);
    json_out_member_object(j, "details");
    json_out_member_str(j, "format", "gguf");
    json_out_member_str(j, "family", info.arch ? info.arch : "");
    json_out_member_str(j, "parameter_size", size);
    json_out_member_array(j, "families");
    if (info.arch && info.arch[0])
        json_out_str(j, info.arch);
    json_out_array_end(j);
    size_t n_base;
    const char *base = registry_base_name(m, &n_base);
    json_out_member_strn(j, "parent_model", base ? base : "", n_base);
    json_out_member_str(j, "quantization_level", info.quantization ? info.quantization : "");
    json_out_object_end(j);
}

/* Leaves the object open. sum: NULL: not known yet. */
static void put_head(struct json_out *j, const char *name, uint64_t created_s, uint64_t bytes,
                     const uint8_t *sum)
{
    struct tm tm;
    time_t at = (time_t)created_s;
    static const uint8_t unknown[SHA256_BYTES] = {0}; /* Ollama's own client cuts off 12 digits */
    char stamp[40], digest[2 * SHA256_BYTES + 1];
    gmtime_r(&at, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
    sha256_hex(digest, sum ? sum : unknown);
    json_out_object(j);
    json_out_member_str(j, "name", name);
    json_out_member_str(j, "model", name);
    json_out_member_str(j, "modified_at", stamp);
    json_out_member_uint(j, "size", bytes);
    json_out_member_str(j, "digest", digest);
}

/* When the model is unloaded if unused; a year in the far future: never. */
static void put_expiry(struct json_out *j, const struct registry_model *m)
{
    uint64_t due = registry_expires_ns(m), now = clock_ns();
    time_t at = time(NULL);
    struct tm tm;
    char text[40] = "2300-01-01T00:00:00Z";
    if (due != UINT64_MAX) {
        at += due > now && m->users == 0 ? (time_t)((due - now) / 1000000000u) : 0;
        gmtime_r(&at, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    json_out_member_str(j, "expires_at", text);
}

/* An average, whose route this client may not use: for it there is no such name. */
static bool is_foreign(const struct listing *l, const struct registry_model *m)
{
    const struct router_route *r =
        m->slot->spec.n_parts > 0 ? router_table_find(&l->call->gl->config->router, m->name) : NULL;
    return r && !router_may_call(r, l->call->client ? l->call->client->name : "");
}

static void put_tag(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    if ((l->loaded_only && m->slot->state != REGISTRY_READY) || is_foreign(l, m))
        return;
    put_head(&l->j, m->name, m->slot->created_s, m->slot->file_bytes, registry_sum(m));
    put_details(&l->j, m);
    if (l->loaded_only) {
        put_expiry(&l->j, m);
        json_out_member_uint(&l->j, "size_memory", m->slot->bytes);
        json_out_member_uint(&l->j, "size_vram", 0);
        json_out_member_uint(&l->j, "context_length", m->slot->n_ctx);
    }
    json_out_object_end(&l->j);
}

/* A model of another node. */
static void put_remote_tag(void *ctx, const struct node_model *m)
{
    struct listing *l = ctx;
    enum registry_state here;
    if ((l->loaded_only && m->state != REGISTRY_READY) ||
        registry_state(l->gw->registry, m->name, &here))
        return;
    put_head(&l->j, m->name, l->gw->started_s, m->bytes, m->sum);
    json_out_member_object(&l->j, "details");
    json_out_member_str(&l->j, "format", "gguf");
    json_out_object_end(&l->j);
    json_out_object_end(&l->j);
}

static void list(struct call *c, bool loaded_only)
{
    struct listing l = {
        .call = c, .j = json_out_make(&c->out), .loaded_only = loaded_only, .gw = c->gl->gw};
    json_out_object(&l.j);
    json_out_member_array(&l.j, "models");
    registry_each(c->gl->gw->registry, put_tag, &l);
    if (c->gl->members)
        members_each_model(c->gl->members, put_remote_tag, &l);
    json_out_array_end(&l.j);
    json_out_object_end(&l.j);
    call_json(c, 200);
}

void ollama_tags(struct call *c)
{
    list(c, false);
}

void ollama_ps(struct call *c)
{
    list(c, true);
}

/* Options, a line for each value: with the word in front of it in a modelfile, or in columns. */
static void put_parameters(struct buf *b, const char *word, const cJSON *v)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, v)
    {
        const cJSON *item = cJSON_IsArray(one) ? one->child : one;
        for (; item; item = cJSON_IsArray(one) ? item->next : NULL) {
            char *text = cJSON_PrintUnformatted(item);
            buf_printf(b, "%s%s%-*s %s", b->len > 0 ? "\n" : "", word, *word ? 0 : 30, one->string,
                       text ? text : "");
            cJSON_free(text);
        }
    }
}

/* The model's settings: texts and a modelfile that recreates it. */
static void put_profile(struct json_out *j, const struct registry_model *m,
                        const struct model_profile *p, const char *own_template)
{
    const char *template = p && p->template ? p->template : own_template;
    cJSON *parameters = p && p->parameters ? cJSON_Parse(p->parameters) : NULL;
    cJSON *messages = p && p->messages ? cJSON_Parse(p->messages) : NULL;
    const cJSON *one;
    struct buf file, list;
    buf_init(&file, MAX_MODELFILE_BYTES);
    buf_init(&list, MAX_MODELFILE_BYTES);
    buf_printf(&file, "FROM %s", p && p->from ? p->from : m->name);
    if (template[0])
        buf_printf(&file, "\nTEMPLATE \"\"\"%s\"\"\"", template);
    if (p && p->system)
        buf_printf(&file, "\nSYSTEM \"\"\"%s\"\"\"", p->system);
    put_parameters(&file, "PARAMETER ", parameters);
    put_parameters(&list, "", parameters);
    cJSON_ArrayForEach(one, messages)
        buf_printf(&file, "\nMESSAGE %s \"\"\"%s\"\"\"",
                   cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "role")),
                   cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "content")));
    if (p && p->license)
        buf_printf(&file, "\nLICENSE \"\"\"%s\"\"\"", p->license);
    buf_putc(&file, '\n');
    json_out_member_str(j, "modelfile", buf_str(&file));
    json_out_member_str(j, "template", template);
    json_out_member_str(j, "parameters", buf_str(&list));
    json_out_member_str(j, "system", p && p->system ? p->system : "");
    json_out_member_str(j, "license", p && p->license ? p->license : "");
    if (messages)
        json_out_member_raw(j, "messages", p->messages, strlen(p->messages));
    cJSON_Delete(parameters);
    cJSON_Delete(messages);
    buf_fini(&file);
    buf_fini(&list);
}

static void put_shown(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    struct shoal_engine_info info = {.size = sizeof(info)};
    char key[80];
    if (strncmp(m->name, l->name, l->name_bytes) != 0 || m->name[l->name_bytes] || is_foreign(l, m))
        return;
    l->found = true;
    if (m->slot->engine)
        shoal_engine_info(m->slot->engine, &info);
    const struct model_profile *p =
        l->gw->profiles ? model_profiles_get(l->gw->profiles, m->name) : NULL;
    json_out_object(&l->j);
    put_profile(&l->j, m, p, info.chat_template ? info.chat_template : "");
    model_profiles_unref(l->gw->profiles, p);
    put_details(&l->j, m);
    json_out_member_object(&l->j, "model_info");
    json_out_member_str(&l->j, "general.architecture", info.arch ? info.arch : "");
    json_out_member_uint(&l->j, "general.parameter_count", info.n_params);
    json_out_member_uint(&l->j, "context_length", info.n_ctx);
    if (info.arch) { /* clients look for this one */
        snprintf(key, sizeof(key), "%.48s.context_length", info.arch);
        json_out_member_uint(&l->j, key, info.n_ctx);
    }
    json_out_object_end(&l->j);
    json_out_member_array(&l->j, "capabilities");
    if (m->slot->kinds & SHOAL_KIND_GENERATE || strcmp(m->task, "generate") == 0)
        json_out_str(&l->j, "completion");
    if (m->slot->kinds & SHOAL_KIND_EMBED)
        json_out_str(&l->j, "embedding");
    if (info.chat_template && strstr(info.chat_template, "tools"))
        json_out_str(&l->j, "tools");
    if (info.chat_template && strstr(info.chat_template, "think"))
        json_out_str(&l->j, "thinking");
    json_out_array_end(&l->j);
    json_out_object_end(&l->j);
}

void ollama_show(struct call *c)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(c->json, "model");
    if (!cJSON_IsString(name) || !name->valuestring[0]) /* Ollama's own client sends both */
        name = cJSON_GetObjectItemCaseSensitive(c->json, "name");
    if (!cJSON_IsString(name)) {
        call_fail(c, 400, NULL, "model", "missing_required_parameter", "'model' is missing");
        return;
    }
    struct listing l = {.call = c,
                        .j = json_out_make(&c->out),
                        .name = name->valuestring,
                        .name_bytes = flow_name_bytes(c->gl->flow.flow, name->valuestring),
                        .gw = c->gl->gw};
    registry_each(c->gl->gw->registry, put_shown, &l);
    if (l.found)
        call_json(c, 200);
    else
        call_fail(c, 404, NULL, "model", "model_not_found", "model '%.64s' not found",
                  name->valuestring);
}

/* There is no cloud behind this server. */

void ollama_status(struct call *c)
{
    buf_puts(&c->out, "{\"cloud\":{\"disabled\":true,\"source\":\"config\"}}");
    call_json(c, 200);
}

/* Ollama's own client pushes only if somebody is signed in: here that is the key's owner, to the
 * registry of the configuration. */
void ollama_me(struct call *c)
{
    if (!c->gl->config->ollama_registry) {
        call_fail(c, 401, NULL, NULL, "unauthorized",
                  "there is nothing to be signed in to: set 'ollama.registry'");
        return;
    }
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "id", "00000000-0000-0000-0000-000000000000");
    json_out_member_str(&j, "name", c->client ? c->client->name : "local");
    json_out_member_str(&j, "email", "");
    json_out_object_end(&j);
    call_json(c, 200);
}

void ollama_signout(struct call *c)
{
    buf_puts(&c->out, "null");
    call_json(c, 200);
}

void ollama_version(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "version", shoal_version());
    json_out_object_end(&j);
    call_json(c, 200);
}
