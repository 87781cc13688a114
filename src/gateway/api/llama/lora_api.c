/* lora_api.c - see lora_api.h. */
#include "gateway/api/llama/lora_api.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/config.h"
#include "flow/request.h"
#include "gateway/call/body.h"
#include "gateway/call/call.h"
#include "host/registry.h"

#define MAX_LISTED 1024
#define MAX_SCALE 1000.0
#define NAME_BYTES 256u

int lora_api_read(struct lora_choice *out, const cJSON *list, struct fields_error *e)
{
    const cJSON *one;
    *out = (struct lora_choice){.id = -1};
    if (!list)
        return 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MAX_LISTED)
        return fields_fail(e, "lora", "invalid_type",
                           "'lora' must be a list such as [{\"id\": 0, \"scale\": 0.5}]");
    out->given = true;
    cJSON_ArrayForEach(one, list)
    {
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(one, "id");
        const cJSON *scale = cJSON_GetObjectItemCaseSensitive(one, "scale");
        if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < 1e6) ||
            floor(id->valuedouble) != id->valuedouble || !cJSON_IsNumber(scale) ||
            !(fabs(scale->valuedouble) <= MAX_SCALE))
            return fields_fail(e, "lora", "invalid_value",
                               "an adapter needs an \"id\", as GET /lora-adapters lists it, and a "
                               "\"scale\" from -%g to %g",
                               MAX_SCALE, MAX_SCALE);
        if ((float)scale->valuedouble == 0.0f)
            continue;
        if (out->id >= 0 && out->id != (int64_t)id->valuedouble)
            return fields_fail(e, "lora", "invalid_value",
                               "one adapter for each request: %lld and %lld both have a scale "
                               "other than 0",
                               (long long)out->id, (long long)id->valuedouble);
        out->id = (int64_t)id->valuedouble;
        out->scale = (float)scale->valuedouble;
    }
    return 0;
}

/* ---- the adapters of a base ---- */

struct search {
    const char *base; /* NULL: of the model that answers when none is named */
    char first[NAME_BYTES];
    struct json_out *j; /* lists them; or NULL */
    uint32_t n;
    char preset[NAME_BYTES]; /* the one that was chosen for all; "": none */
    float scale;
};

static void find_first(void *ctx, const struct registry_model *m)
{
    struct search *s = ctx;
    if (!s->first[0] && !m->slot->base &&
        ((m->slot->kinds & SHOAL_KIND_GENERATE) || strcmp(m->task, "generate") == 0))
        snprintf(s->first, sizeof(s->first), "%s", m->name);
}

static void put_adapter(struct json_out *j, uint32_t id, const struct registry_model *m)
{
    json_out_object(j);
    json_out_member_uint(j, "id", id);
    json_out_member_str(j, "name", m->name);
    const char *slash = strrchr(m->slot->path, '/'); /* where it lies is nobody's business */
    json_out_member_str(j, "path", slash && slash[1] ? slash + 1 : m->slot->path);
    json_out_member_num(j, "scale", (double)m->preset);
    json_out_object_end(j);
}

static void look(void *ctx, const struct registry_model *m)
{
    struct search *s = ctx;
    size_t n;
    const char *of = registry_base_name(m, &n);
    if (!of || strlen(s->base) != n || memcmp(of, s->base, n) != 0)
        return;
    if (s->j)
        put_adapter(s->j, s->n, m);
    if (m->preset != 0) {
        snprintf(s->preset, sizeof(s->preset), "%s", m->name);
        s->scale = m->preset;
    }
    s->n++;
}

/* base NULL: the default model's. */
static void search(struct call *c, struct search *s, const char *base)
{
    struct registry *all = c->gl->gw->registry;
    s->base = base;
    if (!base) {
        registry_each(all, find_first, s);
        s->base = s->first;
    }
    if (s->base[0])
        registry_each(all, look, s);
}

bool lora_api_choose(struct call *c, struct request *r, const struct lora_choice *x)
{
    char name[NAME_BYTES];
    struct search s = {.n = 0};
    if (x->given && x->id < 0)
        return true;
    search(c, &s, r->model);
    if (!x->given && !s.preset[0])
        return true;
    if (x->given &&
        !registry_adapter_name(c->gl->gw->registry, s.base, (uint32_t)x->id, name, sizeof(name))) {
        call_fail(c, 400, NULL, "lora", "invalid_value",
                  "the model '%.64s' has %u adapters here, and none with the id %lld", s.base, s.n,
                  (long long)x->id);
        return false;
    }
    const char *chosen = x->given ? name : s.preset;
    r->model = request_copy(r, chosen, strlen(chosen));
    r->generate.adapter_scale = x->given ? x->scale : s.scale;
    return true;
}

void lora_api_list(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    struct search s = {.j = &j};
    json_out_array(&j);
    search(c, &s, NULL);
    json_out_array_end(&j);
    call_json(c, 200);
}

void lora_api_set(struct call *c)
{
    struct fields_error fe = {{0}, {0}, NULL};
    struct registry *all = c->gl->gw->registry;
    struct lora_choice x = {.id = -1};
    struct search s = {.n = 0};
    char name[NAME_BYTES];
    bool answered;
    cJSON *body = body_parse_small(c, &answered);
    if (answered)
        return;
    int rc = body ? lora_api_read(&x, body, &fe)
                  : fields_fail(&fe, "lora", "invalid_json",
                                "the body must be a list such as [{\"id\": 0, \"scale\": 0.5}]");
    cJSON_Delete(body);
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    search(c, &s, NULL);
    if (x.id >= (int64_t)s.n) {
        call_fail(c, 400, NULL, "id", "invalid_value",
                  "the model '%.64s' has %u adapters here, and none with the id %lld", s.base, s.n,
                  (long long)x.id);
        return;
    }
    for (uint32_t i = 0; i < s.n; i++)
        if (registry_adapter_name(all, s.base, i, name, sizeof(name)))
            registry_set_preset(all, name, (int64_t)i == x.id ? x.scale : 0.0f);
    call_text(c, 200, "application/json", "{\"success\":true}", 16);
}

/* ---- loading and unloading ---- */

struct load {
    const char *name, *path, *base;
    double scale;
};
#define AT(member) offsetof(struct load, member)

const struct field lora_api_load_fields[] = {
    {"lora_name", FIELD_STR, AT(name), 0, 0, "its name, with or without MODEL: before it", NULL},
    {"lora_path", FIELD_STR, AT(path), 0, 0, "a folder of PEFT's, or a GGUF file", NULL},
    {"base_model_name", FIELD_STR, AT(base), 0, 0, "the model it belongs to; default: the first",
     NULL},
    {"scale", FIELD_NUM, AT(scale), -1000, 1000, "factor on what it adds", NULL},
};
const size_t lora_api_n_load_fields =
    sizeof(lora_api_load_fields) / sizeof(lora_api_load_fields[0]);
const struct field lora_api_unload_fields[] = {
    {"lora_name", FIELD_STR, AT(name), 0, 0, "its name, with or without MODEL: before it", NULL},
    {"base_model_name", FIELD_STR, AT(base), 0, 0, "the model it belongs to; default: the first",
     NULL},
};
const size_t lora_api_n_unload_fields =
    sizeof(lora_api_unload_fields) / sizeof(lora_api_unload_fields[0]);

/* The full name, and the length of its base's.  false: the call was answered. */
static bool full_name(struct call *c, const struct load *b, char out[NAME_BYTES], size_t *n_base)
{
    struct search s = {.n = 0};
    const char *colon = b->name ? strrchr(b->name, ':') : NULL;
    int n;
    if (!b->name || !b->name[0]) {
        call_fail(c, 400, NULL, "lora_name", "missing_required_parameter",
                  "'lora_name' is required");
        return false;
    }
    search(c, &s, b->base);
    if (colon)
        n = snprintf(out, NAME_BYTES, "%s", b->name);
    else
        n = snprintf(out, NAME_BYTES, "%s:%s", s.base, b->name);
    if (n < 0 || n >= 128 || strchr(b->name, '/') || (!colon && !s.base[0])) {
        call_fail(c, 400, NULL, "lora_name", "invalid_value",
                  "'%.64s' cannot name an adapter here: expected a word without slashes, and a "
                  "model that generates text",
                  b->name);
        return false;
    }
    *n_base = (size_t)(strrchr(out, ':') - out);
    return true;
}

void lora_api_load(struct call *c)
{
    struct load b = {.scale = 1};
    struct fields_error fe = {{0}, {0}, NULL};
    struct err e = {0};
    char name[NAME_BYTES], base[NAME_BYTES], *path = NULL;
    size_t n_base;
    int rc =
        fields_read(lora_api_load_fields, lora_api_n_load_fields, c->json, &b, c->lenient, &fe);
    if (rc == 0 && (!b.path || !b.path[0]))
        rc = fields_fail(&fe, "lora_path", "missing_required_parameter", "'lora_path' is required");
    if (rc == 0 && b.scale == 0)
        rc = fields_fail(&fe, "scale", "invalid_value", "a scale of 0 adds nothing");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    if (!full_name(c, &b, name, &n_base))
        return;
    rc = config_confine(c->gl->config, b.path, &path, &e);
    if (rc == SHOAL_EINVAL) {
        call_fail(c, 403, NULL, "lora_path", "path_refused", "%s", e.msg);
        return;
    }
    snprintf(base, sizeof(base), "%.*s", (int)n_base, name);
    const struct registry_spec spec = {
        .name = name, .path = path, .task = "generate", .base = base, .adapter_scale = b.scale};
    if (rc == 0)
        rc = registry_add(c->gl->gw->registry, &spec, &e);
    if (rc == 0)
        rc = registry_load(c->gl->gw->registry, name, &e);
    mem_free(path);
    if (rc < 0) {
        call_fail_code(c, rc, e.msg);
        return;
    }
    char text[NAME_BYTES + 64];
    const int n =
        snprintf(text, sizeof(text), "Success: LoRA adapter '%s' added successfully.", name);
    call_text(c, 200, "text/plain", text, (size_t)n);
}

static void is_adapter(void *ctx, const struct registry_model *m)
{
    struct search *s = ctx;
    if (m->slot->base && strcmp(m->name, s->base) == 0)
        s->n++;
}

void lora_api_unload(struct call *c)
{
    struct load b = {.name = NULL};
    struct fields_error fe = {{0}, {0}, NULL};
    struct err e = {0};
    char name[NAME_BYTES];
    size_t n_base;
    if (fields_read(lora_api_unload_fields, lora_api_n_unload_fields, c->json, &b, c->lenient,
                    &fe) < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    if (!full_name(c, &b, name, &n_base))
        return;
    struct search s = {.base = name};
    registry_each(c->gl->gw->registry, is_adapter, &s);
    int rc = s.n == 0 ? err_set(&e, SHOAL_ENOTFOUND, "there is no adapter '%.128s'", name)
                      : registry_remove(c->gl->gw->registry, name, &e);
    if (rc < 0) {
        call_fail_code(c, rc, e.msg);
        return;
    }
    char text[NAME_BYTES + 64];
    const int n =
        snprintf(text, sizeof(text), "Success: LoRA adapter '%s' removed successfully.", name);
    call_text(c, 200, "text/plain", text, (size_t)n);
}
