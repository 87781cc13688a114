/* sensors.c - see sensors.h. */
#include "gateway/api/own/sensors.h"

#include <string.h>

#include "gateway/api/own/alarms.h"
#include "gateway/call/call.h"
#include "gateway/call/ticker.h"
#include "site/things/plant.h"
#include "things/things.h"
#include "wire/json_out.h"

#define STREAM_MS 200u     /* maximum delay of a stream's events */
#define MAX_STREAMED 1000u /* sensors of one stream; ?machine= chooses others */
#define MAX_HISTORY 120u   /* values of each, at the beginning of a stream */
#define RECENT 20u         /* alarms at the beginning of a stream */
#define MAX_NAME 130u

struct look {
    struct call *call;
    char machine[MAX_NAME]; /* only its sensors; "": all */
    bool stream, first;     /* first: the stream has just begun */
};

/* False: the call has failed. */
static bool read_query(struct look *l, struct call *c)
{
    *l = (struct look){.call = c};
    if (!http_query(c->req, "machine", l->machine, sizeof(l->machine)))
        l->machine[0] = '\0';
    return call_query_bool(c, "stream", &l->stream);
}

static void put_counts(struct json_out *j, const struct reading_counts *n)
{
    json_out_member_object(j, "readings");
    json_out_member_uint(j, "all", n->n);
    json_out_member_uint(j, "bad", n->bad);
    json_out_member_uint(j, "uncertain", n->uncertain);
    json_out_member_uint(j, "duplicates", n->duplicates);
    json_out_member_uint(j, "late", n->late);
    json_out_member_uint(j, "skewed", n->skewed);
    json_out_member_uint(j, "gaps", n->gaps);
    json_out_member_uint(j, "merged", n->merged);
    json_out_member_uint(j, "steps", n->steps);
    json_out_member_uint(j, "checked", n->checked);
    json_out_object_end(j);
}

/* The fields that change with every reading. */
static void put_now(struct json_out *j, const struct things_view *v)
{
    json_out_member_num(j, "value", v->value);
    json_out_member_int(j, "time_ms", v->time_ms);
    json_out_member_num(j, "normal_low", v->low);
    json_out_member_num(j, "normal_high", v->high);
    json_out_member_num(j, "score", v->score);
    json_out_member_bool(j, "learning", v->learning);
    json_out_member_uint(j, "learned", v->learned);
    json_out_member_uint(j, "learn", v->learn);
    json_out_member_uint(j, "doubtful", v->doubtful);
    json_out_member_uint(j, "alarm", v->alarm);
}

static void put_history(struct json_out *j, const struct things *t, uint32_t sensor)
{
    float values[MAX_HISTORY];
    double interval_ms;
    int64_t end_ms;
    uint32_t n = things_history(t, sensor, values, MAX_HISTORY, &interval_ms, &end_ms);
    json_out_member_object(j, "history");
    json_out_member_int(j, "end_ms", end_ms);
    json_out_member_num(j, "interval_ms", interval_ms);
    json_out_member_array(j, "values");
    for (uint32_t i = 0; i < n; i++)
        json_out_num(j, (double)values[i]);
    json_out_array_end(j);
    json_out_object_end(j);
}

/* Calls fn for the sensors that are wanted; returns how many there are. */
static uint32_t each(const struct look *l, struct things *t, struct json_out *j,
                     void (*fn)(const struct look *, struct json_out *, struct things *, uint32_t,
                                const struct things_view *))
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < things_count(t); i++) {
        struct things_view v;
        things_view(t, i, &v);
        if (l->machine[0] && strcmp(v.machine, l->machine) != 0)
            continue;
        if (strncmp(v.name, PLANT_CONFIDENCE, strlen(PLANT_CONFIDENCE)) == 0)
            continue; /* of a model: its alarms are listed, its figures are in /metrics */
        if (!l->stream || n < MAX_STREAMED)
            fn(l, j, t, i, &v);
        n++;
    }
    return n;
}

static void put_whole(const struct look *l, struct json_out *j, struct things *t, uint32_t i,
                      const struct things_view *v)
{
    json_out_object(j);
    json_out_member_str(j, "sensor", v->name);
    json_out_member_str(j, "title", v->title);
    json_out_member_str(j, "unit", v->unit);
    json_out_member_str(j, "machine", v->machine);
    json_out_member_str(j, "machine_title", v->machine_title);
    json_out_member_num(j, "limit_low", v->limit_low);
    json_out_member_num(j, "limit_high", v->limit_high);
    put_now(j, v);
    if (l->stream)
        put_history(j, t, i);
    put_counts(j, &v->counts);
    json_out_object_end(j);
}

/* With the plant's lock held. */
static void put_list(void *ctx, struct things *t)
{
    const struct look *l = ctx;
    struct json_out j = json_out_make(&l->call->out);
    json_out_object(&j);
    json_out_member_str(&j, "object", "list");
    json_out_member_array(&j, "data");
    uint32_t n = each(l, t, &j, put_whole);
    json_out_array_end(&j);
    json_out_member_uint(&j, "total", n);
    json_out_object_end(&j);
}

/* ---- the stream ---- */

static void put_alarm(struct call *c, const struct alarm_event *e)
{
    call_event_begin(c, "alarm");
    struct json_out j = json_out_make(&c->out);
    alarms_put(&j, e);
    call_event_end(c);
}

static void put_first(struct look *l, struct things *t)
{
    struct alarm_event recent[RECENT];
    uint32_t n = things_alarms(t, recent, RECENT, 0, false);
    call_event_begin(l->call, "sensors");
    put_list(l, t);
    call_event_end(l->call);
    for (uint32_t i = n < RECENT ? n : RECENT; i-- > 0;) /* the oldest first */
        put_alarm(l->call, &recent[i]);
}

static void put_changed(const struct look *l, struct json_out *j, struct things *t, uint32_t i,
                        const struct things_view *v)
{
    (void)t;
    (void)i;
    if (v->serial <= l->call->cursor)
        return;
    json_out_object(j);
    json_out_member_str(j, "sensor", v->name);
    put_now(j, v);
    json_out_object_end(j);
}

/* Everything that changed since the last event.  With the plant's lock held. */
static void put_changes(void *ctx, struct things *t)
{
    struct look *l = ctx;
    struct call *c = l->call;
    struct alarm_event e;
    if (l->first) {
        put_first(l, t);
        c->cursor = things_serial(t);
        return;
    }
    if (things_serial(t) == c->cursor)
        return;
    call_event_begin(c, "readings");
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_array(&j, "data");
    each(l, t, &j, put_changed);
    json_out_array_end(&j);
    json_out_object_end(&j);
    call_event_end(c);
    for (uint64_t after = c->cursor; things_alarm_changed(t, after, &e); after = e.serial)
        put_alarm(c, &e);
    c->cursor = things_serial(t);
}

static void send_changes(struct call *c)
{
    struct look l;
    uint64_t before = c->cursor;
    if (!read_query(&l, c))
        return;
    l.first = !c->began;
    if (l.first)
        call_begin(c, SSE_TYPE);
    plant_look(c->gl->gw->plant, put_changes, &l);
    if (!l.first && c->cursor == before && !c->event)
        buf_puts(&c->out, ":\n\n"); /* a comment, to detect clients that are gone */
    call_flush(c);
}

void sensors_list(struct call *c)
{
    static const struct ticker_ops ops = {send_changes, call_end};
    struct look l;
    if (!alarms_has_plant(c) || !read_query(&l, c))
        return;
    if (l.stream) {
        if (!ticker_start(c, STREAM_MS, &ops))
            call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many clients watch this server");
        return;
    }
    plant_look(c->gl->gw->plant, put_list, &l);
    buf_putc(&c->out, '\n');
    call_json(c, 200);
}
