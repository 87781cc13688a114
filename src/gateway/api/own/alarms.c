/* alarms.c - see alarms.h. */
#include "gateway/api/own/alarms.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread/executor.h"
#include "gateway/call/call.h"
#include "gateway/call/ticker.h"
#include "site/things/plant.h"
#include "things/things.h"
#include "wire/json_out.h"

#define STREAM_MS 100u      /* maximum delay of a stream's events */
#define MAX_LISTED 1000u    /* alarms of one answer */
#define LISTED 100u         /* without a limit */
#define MAX_READINGS 10000u /* readings per request */
#define MAX_ANSWER_BYTES ((size_t)64 << 10)

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
    json_out_member_array(&j, "data");
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
        buf_puts(&c->out, ":\n\n"); /* a comment, to detect clients that are gone */
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
            call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many clients watch this server");
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

/* ---- work on the plant's thread: the loop must not wait for a disk ---- */

#define MAX_BY 128u

struct acknowledgement {
    int64_t id;
    const char *by;
};

struct work {
    struct plant_job job;
    struct executor_task finished;
    struct call *call; /* held */
    struct buf out;    /* the answer */
    /* readings */
    struct reading *list;
    size_t n;
    /* or an acknowledgement */
    uint64_t id;
    char by[MAX_BY];
    int64_t now_ms;
    struct err error;
    int rc;
};

static void on_finished(struct executor_task *t)
{
    struct work *w = EXECUTOR_OF(t, struct work, finished);
    struct call *c = w->call;
    if (c->req && w->rc < 0) {
        call_fail_code(c, w->rc, w->error.msg);
    } else if (c->req) {
        buf_put(&c->out, buf_str(&w->out), w->out.len);
        call_json(c, w->list ? 202 : 200);
    }
    c->gl->flow.n_jobs--;
    buf_fini(&w->out);
    mem_free(w->list);
    mem_free(w);
    call_release(c);
}

/* NULL: the call has failed. */
static struct work *make_work(struct call *c, void (*fn)(struct plant_job *j, struct plant *p))
{
    struct work *w = mem_zalloc(sizeof(*w));
    if (!w) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return NULL;
    }
    w->job.fn = fn;
    w->finished.fn = on_finished;
    w->call = c;
    buf_init(&w->out, MAX_ANSWER_BYTES);
    return w;
}

static void submit(struct work *w)
{
    call_hold(w->call);
    w->call->gl->flow.n_jobs++;
    plant_submit(w->call->gl->gw->plant, &w->job);
}

/* On the plant's thread; the loop has it afterwards. */
static void give_back(struct work *w)
{
    if (w->rc == 0 && w->out.rc < 0)
        w->rc = err_set(&w->error, w->out.rc, "out of memory for the answer");
    executor_post(w->call->gl->flow.executor, &w->finished);
}

/* ---- acknowledging ---- */

#define AT(member) offsetof(struct acknowledgement, member)
const struct field alarms_acknowledge_fields[] = {
    {"id", FIELD_INT, AT(id), 1, 9007199254740992.0, "id of the alarm", NULL},
    {"by", FIELD_STR, AT(by), 0, 0, "who acknowledges; default: the name of the key", NULL}};
const size_t alarms_n_acknowledge_fields =
    sizeof(alarms_acknowledge_fields) / sizeof(alarms_acknowledge_fields[0]);

static void acknowledge(void *ctx, struct things *t)
{
    struct work *w = ctx;
    struct json_out j = json_out_make(&w->out);
    struct alarm_event e;
    w->rc = things_acknowledge(t, w->id, w->by, w->now_ms, &w->error);
    if (w->rc == 0 && things_alarm(t, w->id, &e)) {
        alarms_put(&j, &e);
        buf_putc(&w->out, '\n');
    }
}

static void run_acknowledge(struct plant_job *j, struct plant *p)
{
    struct work *w = EXECUTOR_OF(j, struct work, job);
    plant_change(p, acknowledge, w);
    give_back(w);
}

void alarms_acknowledge(struct call *c)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct acknowledgement a = {.id = 0};
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
    struct work *w = make_work(c, run_acknowledge);
    if (!w)
        return;
    w->id = (uint64_t)a.id;
    w->now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    snprintf(w->by, sizeof(w->by), "%s", a.by ? a.by : c->client ? c->client->name : "");
    submit(w);
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

/* False: *why has the error. */
static bool read_reading(struct plant *p, const cJSON *o, struct reading *r, const char **why)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(o, "value");
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(o, "time_ms");
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "sensor"));
    *r = (struct reading){.sensor = name ? plant_find(p, name) : THINGS_NONE};
    *why = !name                      ? "has no 'sensor'"
           : r->sensor == THINGS_NONE ? "is for a sensor that is not configured"
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

static void run_readings(struct plant_job *j, struct plant *p)
{
    struct work *w = EXECUTOR_OF(j, struct work, job);
    plant_readings(p, w->list, w->n);
    struct json_out out = json_out_make(&w->out);
    json_out_object(&out);
    json_out_member_uint(&out, "accepted", w->n);
    json_out_object_end(&out);
    buf_putc(&w->out, '\n');
    give_back(w);
}

/* All or none: a request that is refused can be sent again. */
static int read_list(struct call *c, const cJSON *list, struct reading *out, struct fields_error *e)
{
    const char *why = NULL;
    uint64_t n = 0;
    for (const cJSON *o = list->child; o; o = o->next, n++)
        if (!read_reading(c->gl->gw->plant, o, &out[n], &why))
            return fields_fail(e, "readings", "invalid_value", "reading %" PRIu64 " %s", n + 1,
                               why);
    return 0;
}

void alarms_readings(struct call *c)
{
    struct readings b = {.list = NULL};
    struct fields_error e = {{0}, {0}, NULL};
    if (!alarms_has_plant(c))
        return;
    int rc =
        fields_read(alarms_readings_fields, alarms_n_readings_fields, c->json, &b, c->lenient, &e);
    if (rc == 0 && (!cJSON_IsArray(b.list) || cJSON_GetArraySize(b.list) > (int)MAX_READINGS))
        rc = fields_fail(&e, "readings", "invalid_type", "'readings' must be a list of at most %u",
                         MAX_READINGS);
    if (rc < 0) {
        call_fail_fields(c, &e);
        return;
    }
    struct work *w = make_work(c, run_readings);
    if (!w)
        return;
    w->n = (size_t)cJSON_GetArraySize(b.list);
    w->list = mem_zalloc_n(w->n + 1, sizeof(*w->list));
    if (!w->list)
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
    else if (read_list(c, b.list, w->list, &e) < 0)
        call_fail_fields(c, &e);
    else {
        submit(w);
        return;
    }
    mem_free(w->list);
    mem_free(w);
}
