/* alarms.c - see alarms.h. */
#include "gateway/api/alarms.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "gateway/call.h"
#include "gateway/things/plant.h"
#include "gateway/ticker.h"
#include "things/things.h"
#include "wire/json_out.h"

#define STREAM_MS 100u      /* how late an event of a stream may be */
#define MAX_LISTED 1000u    /* alarms of one answer */
#define LISTED 100u         /* without a limit */
#define MAX_READINGS 10000u /* of one request */

bool alarms_has_plant(struct call *c)
{
    if (c->gl->gw->plant)
        return true;
    call_fail(c, 404, NULL, NULL, NULL,
              "no sensors are configured: add 'sensors' to the configuration file");
    return false;
}

void alarms_put(struct json_out *j, const struct alarm_event *e)
{
    json_out_object(j);
    alarm_json(j, e);
    json_out_object_end(j);
}

/* ---- lists ---- */

struct listing {
    struct call *call;
    struct alarm_event *room; /* [limit] */
    uint32_t limit;
    bool only_open;
};

/* With the plant's lock held. */
static void put_list(void *ctx, struct things *t)
{
    const struct listing *l = ctx;
    struct json_out j = json_out_make(&l->call->out);
    uint32_t n = things_alarms(t, l->room, l->limit, 0, l->only_open);
    json_out_object(&j);
    json_out_member_str(&j, "object", "list");
    json_out_key(&j, "data");
    json_out_array(&j);
    for (uint32_t i = 0; i < l->limit && i < n; i++)
        alarms_put(&j, &l->room[i]);
    json_out_array_end(&j);
    json_out_member_uint(&j, "total", n);
    json_out_object_end(&j);
    buf_putc(&l->call->out, '\n');
}

/* ---- the stream ---- */

/* Every alarm that changed since the last event.  Changes in between are in its newest state. */
static void put_changes(void *ctx, struct things *t)
{
    struct call *c = ctx;
    struct alarm_event e;
    while (things_alarm_changed(t, c->cursor, &e)) {
        call_event_begin(c, NULL);
        struct json_out j = json_out_make(&c->out);
        alarms_put(&j, &e);
        call_event_end(c);
        c->cursor = e.serial;
    }
}

static void send_changes(struct call *c)
{
    if (!c->began)
        call_begin(c, SSE_TYPE);
    plant_look(c->gl->gw->plant, put_changes, c);
    if (c->out.len == 0 && !c->event)
        buf_puts(&c->out, ":\n\n"); /* a comment: a client that is gone is noticed */
    call_flush(c);
}

void alarms_list(struct call *c)
{
    static const struct ticker_ops ops = {send_changes, call_end};
    struct listing l = {.call = c, .limit = LISTED};
    char text[24];
    bool stream;
    if (!alarms_has_plant(c) || !call_query_bool(c, "stream", &stream) ||
        !call_query_bool(c, "open", &l.only_open))
        return;
    if (stream) {
        if (!ticker_start(c, STREAM_MS, &ops))
            call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many watch this server");
        return;
    }
    if (http_query(c->req, "limit", text, sizeof(text))) {
        char *end;
        unsigned long limit = strtoul(text, &end, 10);
        l.limit = (uint32_t)limit;
        if (end == text || *end || limit == 0 || limit > MAX_LISTED) {
            call_fail(c, 400, NULL, "limit", "invalid_value", "'limit' must be 1 to %u",
                      MAX_LISTED);
            return;
        }
    }
    l.room = mem_zalloc_n(l.limit, sizeof(*l.room));
    if (!l.room) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    plant_look(c->gl->gw->plant, put_list, &l);
    mem_free(l.room);
    call_json(c, 200);
}

/* ---- acknowledging ---- */

struct acknowledgement {
    int64_t id;
    const char *by;
    int64_t now_ms;
    struct call *call;
    struct err error;
    int rc;
};

#define AT(member) offsetof(struct acknowledgement, member)
const struct field alarms_acknowledge_fields[] = {
    {"id", FIELD_INT, AT(id), 1, 9007199254740992.0, "id of the alarm", NULL},
    {"by", FIELD_STR, AT(by), 0, 0, "who acknowledges; default: the name of the key", NULL}};
const size_t alarms_n_acknowledge_fields =
    sizeof(alarms_acknowledge_fields) / sizeof(alarms_acknowledge_fields[0]);

static void acknowledge(void *ctx, struct things *t)
{
    struct acknowledgement *a = ctx;
    struct json_out j = json_out_make(&a->call->out);
    struct alarm_event e;
    a->rc = things_acknowledge(t, (uint64_t)a->id, a->by, a->now_ms, &a->error);
    if (a->rc == 0 && things_alarm(t, (uint64_t)a->id, &e)) {
        alarms_put(&j, &e);
        buf_putc(&a->call->out, '\n');
    }
}

void alarms_acknowledge(struct call *c)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct acknowledgement a = {.call = c,
                                .now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000};
    struct fields_error e = {{0}, {0}, NULL};
    if (!alarms_has_plant(c))
        return;
    int rc = fields_read(alarms_acknowledge_fields, alarms_n_acknowledge_fields, c->json, &a,
                         c->lenient, &e);
    if (rc == 0 && a.id == 0)
        rc = fields_fail(&e, "id", "missing_required_parameter", "'id' is missing");
    if (rc < 0) {
        call_fail_fields(c, &e);
        return;
    }
    if (!a.by)
        a.by = c->client ? c->client->name : "";
    plant_look(c->gl->gw->plant, acknowledge, &a);
    if (a.rc < 0)
        call_fail_code(c, a.rc, a.error.msg);
    else
        call_json(c, 200);
}

/* ---- readings ---- */

struct readings {
    const cJSON *list;
};

const struct field alarms_readings_fields[] = {
    {"readings", FIELD_VALUE, offsetof(struct readings, list), 0, 0,
     "a list of {\"sensor\": name, \"value\": number or null, \"time_ms\": since 1970, default: "
     "now}",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"}};
const size_t alarms_n_readings_fields =
    sizeof(alarms_readings_fields) / sizeof(alarms_readings_fields[0]);

/* False: *why says what is wrong. */
static bool read_reading(struct plant *p, const cJSON *o, struct reading *r, const char **why)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(o, "value");
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(o, "time_ms");
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "sensor"));
    *r = (struct reading){.sensor = name ? plant_find(p, name) : THINGS_NONE};
    *why = !name                      ? "has no 'sensor'"
           : r->sensor == THINGS_NONE ? "is of a sensor that is not configured"
           : !cJSON_IsNumber(value) && !cJSON_IsNull(value) ? "needs a 'value', a number or null"
           : at && (!cJSON_IsNumber(at) || !(at->valuedouble >= 0 && at->valuedouble < 1e15))
               ? "has a 'time_ms' that is not a time"
               : NULL;
    if (*why)
        return false;
    r->value = cJSON_IsNumber(value) ? value->valuedouble : (double)NAN;
    r->time_ms = at ? (int64_t)at->valuedouble : 0;
    return true;
}

void alarms_readings(struct call *c)
{
    struct readings b = {.list = NULL};
    struct fields_error e = {{0}, {0}, NULL};
    struct reading r;
    const char *why = NULL;
    const cJSON *o;
    uint64_t n = 0;
    if (!alarms_has_plant(c))
        return;
    int rc =
        fields_read(alarms_readings_fields, alarms_n_readings_fields, c->json, &b, c->lenient, &e);
    if (rc == 0 && (!cJSON_IsArray(b.list) || cJSON_GetArraySize(b.list) > (int)MAX_READINGS))
        rc = fields_fail(&e, "readings", "invalid_type", "'readings' must be a list of at most %u",
                         MAX_READINGS);
    /* All or none: a request that is refused can be sent again. */
    for (o = rc == 0 ? b.list->child : NULL; o && rc == 0; o = o->next, n++)
        if (!read_reading(c->gl->gw->plant, o, &r, &why))
            rc = fields_fail(&e, "readings", "invalid_value", "reading %" PRIu64 " %s", n + 1, why);
    if (rc < 0) {
        call_fail_fields(c, &e);
        return;
    }
    for (o = b.list->child; o; o = o->next)
        if (read_reading(c->gl->gw->plant, o, &r, &why))
            plant_reading(c->gl->gw->plant, &r);
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_uint(&j, "accepted", n);
    json_out_object_end(&j);
    buf_putc(&c->out, '\n');
    call_json(c, 202);
}
