/* later_site.c - see later_site.h. */
#include "site/things/later_site.h"

#include <limits.h>
#include <stdio.h>

#include "apps/home/home_later_run.h"
#include "apps/home/site/home_things.h"
#include "base/buf.h"
#include "base/file/state_file.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"

#define FILE_NAME "home-scheduled.json"
#define MAX_EVENT_BYTES ((size_t)64 << 10)

struct later_site {
    struct home_things *things;
    struct home_later_run run;
    struct home_later *later;
    struct mqtt *client; /* NULL: no broker */
    char topic[MQTT_TOPIC_MAX_BYTES];
};

static void publish(struct later_site *s, const struct home_later_entry *x)
{
    char topic[MQTT_TOPIC_MAX_BYTES];
    struct err e = {0};
    struct buf b;
    int n =
        snprintf(topic, sizeof(topic), "%s/scheduled/%s", s->topic, home_table_later_name(x->kind));
    buf_init(&b, MAX_EVENT_BYTES);
    struct json_out j = json_out_make(&b);
    home_later_put(&j, x);
    const struct mqtt_message m = {.topic = topic,
                                   .payload = b.data,
                                   .n = b.len,
                                   .qos = 1,
                                   .durable = true,
                                   .content_type = "application/json"};
    if (n < 0 || (size_t)n >= sizeof(topic) || b.rc < 0 || mqtt_publish(s->client, &m, &e) < 0)
        log_warn("home", "cannot publish the result of \"%s\": %s", x->what, e.msg);
    buf_fini(&b);
}

static void on_told(void *ctx, const struct home_later_entry *x)
{
    struct later_site *s = ctx;
    log_info("home", "scheduled %llu \"%s\": %s%s%s", (unsigned long long)x->id, x->what, x->result,
             x->reason ? ", " : "", x->reason ? x->reason : "");
    if (s->client)
        publish(s, x);
}

/* The configured file, or one in the state folder; false: none. */
static bool find_file(char out[PATH_MAX], const struct later_site_opts *o)
{
    const char *file = o->config->home_schedule;
    if (!file)
        return state_file_find(out, PATH_MAX, FILE_NAME, o->cache_dir);
    snprintf(out, PATH_MAX, "%s", file);
    return true;
}

int later_site_open(struct later_site **out, const struct later_site_opts *lo, struct err *e)
{
    char file[PATH_MAX];
    *out = NULL;
    if (!lo->things || !lo->table->later.list)
        return 0;
    struct later_site *s = *out = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "schedule");
    bool kept = find_file(file, lo);
    struct home_later_opts o = {.path = kept ? file : NULL,
                                .grace_ms = lo->config->home_grace_ms,
                                .run = home_later_run_entry,
                                .run_ctx = &s->run};
    if (!kept)
        log_warn("home", "there is no state folder: schedules are lost when the server stops; set "
                         "home_schedule");
    s->client = lo->client;
    snprintf(s->topic, sizeof(s->topic), "%s",
             lo->config->mqtt.topic ? lo->config->mqtt.topic : "");
    int rc = home_later_create(&s->later, &o, e);
    /* A second server, or a read-only folder, is no reason not to start. */
    if (rc < 0 && kept && !lo->config->home_schedule) {
        log_warn("home", "schedules are lost when the server stops: %s", e->msg);
        o.path = NULL;
        rc = home_later_create(&s->later, &o, e);
    }
    if (rc < 0)
        return rc;
    s->run = (struct home_later_run){lo->table, lo->things, s->later};
    s->things = lo->things;
    home_later_listen(s->later, on_told, s);
    home_things_set_later(s->things, s->later);
    return 0;
}

int later_site_start(struct later_site *s, struct err *e)
{
    return s ? home_later_start(s->later, e) : 0;
}

void later_site_stop(struct later_site *s)
{
    if (s && s->later)
        home_later_stop(s->later);
}

void later_site_settle(struct later_site *s)
{
    if (!s || !s->later)
        return;
    (void)home_later_tick(s->later);
    s->client = NULL; /* the client is closed next */
}

void later_site_close(struct later_site *s)
{
    if (!s)
        return;
    if (s->things)
        home_things_set_later(s->things, NULL);
    home_later_destroy(s->later);
    mem_free(s);
}

struct home_later *later_site_list(struct later_site *s)
{
    return s ? s->later : NULL;
}
