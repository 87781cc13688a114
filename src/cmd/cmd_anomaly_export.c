/* cmd_anomaly_export.c - shoal anomaly export: the history of readings as CSV, columns or lines for
 * InfluxDB. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/cmd.h"
#include "store/readings_store.h"
#include "wire/json_out.h"

cmd_fn cmd_anomaly_export;

#define FLUSH_BYTES ((size_t)1 << 20)
#define MAX_BYTES ((size_t)2 << 30)

static const struct opts_def defs[] = {
    {"format", 0, OPTS_TEXT, "csv|columns|influx", "csv", 0, 0,
     "csv: a line for each reading; columns: one JSON object of arrays; influx: InfluxDB's line "
     "protocol"},
    {"sensor", 's', OPTS_TEXT, "NAME", NULL, 0, 0, "only this sensor; default: all"},
    {"from", 0, OPTS_TEXT, "TIME", NULL, 0, 0,
     "only from this time on: 2026-01-31, 2026-01-31T12:00:00 (UTC), or milliseconds since 1970"},
    {"until", 0, OPTS_TEXT, "TIME", NULL, 0, 0, "only before this time"},
};
static const struct opts_page page = {
    .command = "anomaly export",
    .arguments = "HISTORY",
    .min_args = 1,
    .max_args = 1,
    .summary = "Prints the history of readings that a server keeps (`history.file`).",
    .details = "The server may run meanwhile.  Readings are sorted by time.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal anomaly export history.db > readings.csv\n"
                "  shoal anomaly export --format influx --from 2026-01-31 history.db\n"
                "  shoal anomaly export --format columns -s vibration history.db\n",
};

enum format { CSV, COLUMNS, INFLUX };

struct export
{
    const struct opts_page *page;
    enum format format;
    struct buf out;                    /* csv, influx: what is not printed yet */
    struct buf sensors, times, values; /* columns */
    uint64_t n;
};

static bool parse_time(const char *text, int64_t *out)
{
    struct tm tm = {0};
    char *end;
    long long ms = strtoll(text, &end, 10);
    if (end > text && !*end) {
        *out = ms;
        return true;
    }
    const char *rest = strptime(text, "%Y-%m-%d", &tm);
    if (rest && (*rest == 'T' || *rest == ' '))
        rest = strptime(rest + 1, "%H:%M:%S", &tm);
    if (rest && *rest == 'Z')
        rest++;
    *out = (int64_t)timegm(&tm) * 1000;
    return rest && !*rest;
}

/* RFC 4180: in quotes if need be. */
static void put_csv_text(struct buf *b, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        buf_puts(b, text);
        return;
    }
    buf_putc(b, '"');
    for (; *text; text++) {
        if (*text == '"')
            buf_putc(b, '"');
        buf_putc(b, *text);
    }
    buf_putc(b, '"');
}

/* A tag of the line protocol: no commas, spaces, equal signs or line breaks of its own. */
static void put_influx_text(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (strchr(",= \\", *text))
            buf_putc(b, '\\');
        buf_putc(b, *text == '\n' || *text == '\r' ? '_' : *text);
    }
}

static void put_csv(struct export *x, const struct readings_store_row *r)
{
    time_t s = (time_t)(r->time_ms / 1000);
    struct tm tm;
    char time[32];
    gmtime_r(&s, &tm);
    strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(&x->out, "%s.%03dZ,", time, (int)(r->time_ms % 1000));
    put_csv_text(&x->out, r->sensor);
    buf_printf(&x->out, ",%.17g,", r->value);
    put_csv_text(&x->out, r->unit);
    buf_putc(&x->out, '\n');
}

static void put_influx(struct export *x, const struct readings_store_row *r)
{
    buf_puts(&x->out, "reading,sensor=");
    put_influx_text(&x->out, r->sensor);
    if (*r->unit) {
        buf_puts(&x->out, ",unit=");
        put_influx_text(&x->out, r->unit);
    }
    buf_printf(&x->out, " value=%.17g %lld000000\n", r->value, (long long)r->time_ms);
}

static void put_columns(struct export *x, const struct readings_store_row *r)
{
    struct json_out j = json_out_make(&x->sensors);
    const char *comma = x->n ? "," : "";
    buf_puts(&x->sensors, comma);
    json_out_str(&j, r->sensor);
    buf_printf(&x->times, "%s%lld", comma, (long long)r->time_ms);
    buf_printf(&x->values, "%s%.17g", comma, r->value);
}

static int put_row(void *ctx, const struct readings_store_row *r)
{
    struct export *x = ctx;
    if (x->format == CSV)
        put_csv(x, r);
    else if (x->format == INFLUX)
        put_influx(x, r);
    else
        put_columns(x, r);
    x->n++;
    if (x->out.rc < 0 || x->sensors.rc < 0 || x->times.rc < 0 || x->values.rc < 0)
        return SHOAL_ENOMEM;
    if (x->out.len < FLUSH_BYTES)
        return 0;
    int rc = cmd_print(x->page, &x->out) == CMD_OK ? 0 : SHOAL_EIO;
    buf_clear(&x->out);
    return rc;
}

static int export_all(struct export *x, const char *file, const struct readings_store_query *q,
                      struct err *e)
{
    const struct readings_store_opts o = {.must_exist = true};
    struct readings_store *s = NULL;
    int rc = readings_store_open(&s, file, &o, e);
    if (rc < 0)
        return rc;
    if (x->format == CSV)
        buf_puts(&x->out, "time,sensor,value,unit\n");
    rc = readings_store_each(s, q, put_row, x, e);
    if (rc == SHOAL_ENOMEM)
        err_set(e, rc, "out of memory: choose fewer readings with --sensor, --from and --until");
    if (rc == 0 && x->format == COLUMNS)
        buf_printf(&x->out, "{\"sensor\":[%s],\"time_ms\":[%s],\"value\":[%s]}\n",
                   buf_str(&x->sensors), buf_str(&x->times), buf_str(&x->values));
    if (rc == 0 && cmd_print(x->page, &x->out) != CMD_OK)
        rc = err_set(e, SHOAL_EIO, "cannot write");
    readings_store_close(s);
    return rc;
}

static bool choose_format(const char *name, enum format *out)
{
    static const char *const names[] = {"csv", "columns", "influx"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum format)i;
            return true;
        }
    return false;
}

int cmd_anomaly_export(int argc, const char *const *argv)
{
    struct opts o;
    struct export x = {.page = &page};
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct readings_store_query q = {.sensor = opts_text(&o, "sensor")};
    const char *from = opts_text(&o, "from"), *until = opts_text(&o, "until");
    buf_init(&x.out, MAX_BYTES);
    buf_init(&x.sensors, MAX_BYTES);
    buf_init(&x.times, MAX_BYTES);
    buf_init(&x.values, MAX_BYTES);
    if (!choose_format(opts_text(&o, "format"), &x.format))
        rc = opts_usage(o.page, "unknown format '%s': csv, columns or influx",
                        opts_text(&o, "format"));
    else if ((from && !parse_time(from, &q.from_ms)) || (until && !parse_time(until, &q.until_ms)))
        rc = opts_usage(o.page, "a time is 2026-01-31, 2026-01-31T12:00:00 or milliseconds");
    else if (export_all(&x, o.args[0], &q, &e) < 0)
        rc = cmd_fail(o.page, "%s", e.msg);
    buf_fini(&x.out);
    buf_fini(&x.sensors);
    buf_fini(&x.times);
    buf_fini(&x.values);
    opts_fini(&o);
    return rc;
}
