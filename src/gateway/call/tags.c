/* tags.c - see tags.h. */
#include "gateway/call/tags.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "flow/request.h"
#include "net/http.h"
#include "router/router.h"

#define MAX_TAGS 64u
#define MAX_VALUE_BYTES 4096u /* longer values do not count */
#define MAX_PART_BYTES 128u

/* "metadata.tier": one key after the other. */
static const cJSON *find_json(const cJSON *json, const char *path)
{
    char part[MAX_PART_BYTES];
    while (json && *path) {
        size_t n = strcspn(path, ".");
        if (n == 0 || n >= sizeof(part))
            return NULL;
        memcpy(part, path, n);
        part[n] = '\0';
        json = cJSON_GetObjectItemCaseSensitive(json, part);
        path += n + (path[n] == '.');
    }
    return json;
}

static const char *json_text(struct request *r, const cJSON *v)
{
    if (cJSON_IsString(v))
        return strlen(v->valuestring) <= MAX_VALUE_BYTES
                   ? request_copy(r, v->valuestring, strlen(v->valuestring))
                   : NULL;
    if (cJSON_IsBool(v))
        return cJSON_IsTrue(v) ? "true" : "false";
    return cJSON_IsNumber(v) ? arena_printf(&r->arena, "%.15g", v->valuedouble) : NULL;
}

struct place {
    const struct http_req *from;
    const cJSON *json;
};

static const char *value_of(const struct place *c, struct request *r,
                            const struct router_rule *rule)
{
    if (rule->field == ROUTER_FIELD_JSON)
        return json_text(r, find_json(c->json, rule->name));
    const char *v = c->from ? http_header(c->from, rule->name) : NULL;
    return v && strlen(v) <= MAX_VALUE_BYTES ? request_copy(r, v, strlen(v)) : NULL;
}

static void add(const struct place *c, struct request *r, struct router_tag *list,
                const struct router_rule *rule)
{
    for (uint32_t i = 0; i < r->n_tags; i++)
        if (list[i].field == rule->field && strcmp(list[i].name, rule->name) == 0)
            return;
    const char *v = r->n_tags < MAX_TAGS ? value_of(c, r, rule) : NULL;
    if (v)
        list[r->n_tags++] =
            (struct router_tag){rule->field, request_copy(r, rule->name, strlen(rule->name)), v};
}

void tags_read(struct request *r, const struct router_table *t, const struct http_req *from,
               const cJSON *json)
{
    const struct place place = {from, json};
    struct router_tag *list = NULL;
    if (from) {
        const char *language = http_header(from, "content-language");
        const char *explain = http_header(from, "x-shoal-explain");
        r->explain = explain && strcmp(explain, "1") == 0;
        if (language && strlen(language) < MAX_PART_BYTES)
            r->language = request_copy(r, language, strcspn(language, "-,; "));
    }
    for (uint32_t i = 0; i < t->n_routes; i++)
        for (uint32_t k = 0; k < t->routes[i].n_rules; k++) {
            const struct router_rule *rule = &t->routes[i].rules[k];
            if (rule->field != ROUTER_FIELD_HEADER && rule->field != ROUTER_FIELD_JSON)
                continue;
            if (!list)
                list = arena_zalloc_n(&r->arena, MAX_TAGS, sizeof(*list));
            if (list)
                add(&place, r, list, rule);
        }
    r->tags = list;
}
