/* home_later_action.c - see home_later_action.h. */
#include "apps/home/later/home_later_action.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define MAX_FIELDS (ASK_PLAN_MAX_FIELDS - 8u) /* results add some */

void home_later_action_write(struct buf *out, const struct ask_plan_action *o)
{
    struct json_out j = json_out_make(out);
    if (o)
        ask_plan_action_json(&j, o);
}

bool home_later_action_fits(const struct ask_plan_action *o)
{
    struct buf b;
    buf_init(&b, HOME_LATER_ACTION_MAX);
    home_later_action_write(&b, o);
    bool fits = b.rc == 0 && o->n_fields <= MAX_FIELDS;
    buf_fini(&b);
    return fits;
}

static bool read_items(struct arena *a, const cJSON *v, struct ask_plan_field *f)
{
    const cJSON *item;
    int n = cJSON_GetArraySize(v);
    if (n < 1 || n > (int)ASK_PLAN_MAX_LIST)
        return false;
    const char **list = arena_zalloc_n(a, (size_t)n, sizeof(*list));
    cJSON_ArrayForEach(item, v)
    {
        if (!list || !cJSON_IsString(item))
            return false;
        list[f->n_items++] = arena_printf(a, "%s", item->valuestring);
    }
    f->items = list;
    return true;
}

static bool read_field(struct arena *a, const cJSON *v, struct ask_plan_field *f)
{
    f->key = arena_printf(a, "%s", v->string);
    if (cJSON_IsString(v))
        f->text = arena_printf(a, "%s", v->valuestring);
    else if (cJSON_IsArray(v))
        return read_items(a, v, f);
    else if (cJSON_IsNumber(v))
        f->number = v->valuedouble;
    return cJSON_IsString(v) || (cJSON_IsNumber(v) && isfinite(v->valuedouble));
}

struct ask_plan_action *home_later_action_read(struct arena *a, const char *json)
{
    cJSON *root = cJSON_Parse(json);
    struct ask_plan_action *o = arena_zalloc(a, sizeof(*o));
    bool ok = o && cJSON_IsObject(root);
    const cJSON *v;
    cJSON_ArrayForEach(v, root)
    {
        if (!ok || !v->string)
            break;
        if (strcmp(v->string, "action") == 0 && cJSON_IsString(v))
            o->name = arena_printf(a, "%s", v->valuestring);
        else
            ok = o->n_fields < MAX_FIELDS && read_field(a, v, &o->fields[o->n_fields++]);
    }
    cJSON_Delete(root);
    return ok && o->name && a->rc == 0 && home_later_action_fits(o) ? o : NULL;
}
