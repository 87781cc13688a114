/* machine_file.c - see machine_file.h. */
#include "things/machine_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "things/joint.h"
#include "wire/json_out.h"

#define TYPE "shoal_machine"
#define VERSION 2 /* 1: other statistics */
#define MAX_FILE_BYTES ((size_t)64 << 20)

void machine_file_destroy(struct machine_file *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->names && i < m->n; i++)
        mem_free(m->names[i]);
    mem_free(m->names);
    mem_free(m->profiles);
    joint_destroy(m->joint);
    mem_free(m);
}

uint32_t machine_file_channel(const struct machine_file *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

static int make(struct machine_file **out, uint32_t n, struct err *e)
{
    struct machine_file *m = mem_zalloc(sizeof(*m));
    *out = NULL;
    if (n == 0 || n > MACHINE_FILE_MAX_CHANNELS) {
        mem_free(m);
        return err_set(e, SHOAL_ELIMIT, "a machine has 1 to %u channels",
                       MACHINE_FILE_MAX_CHANNELS);
    }
    if (m) {
        m->n = n;
        m->names = mem_zalloc_n(n, sizeof(*m->names));
        m->profiles = mem_zalloc_n(n, sizeof(*m->profiles));
    }
    if (!m || !m->names || !m->profiles) {
        machine_file_destroy(m);
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u channels", n);
    }
    *out = m;
    return 0;
}

/* ---- learning ---- */

/* Collects the values of one channel that are not missing, with their times. */
static size_t gather(const struct machine_file_rows *r, uint32_t channel, double *v, int64_t *times)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_rows; i++) {
        double x = r->values[i * r->n + channel];
        if (!isfinite(x))
            continue;
        times[n] = r->times ? r->times[i] : -1;
        v[n++] = x;
    }
    return n;
}

static int learn_channels(struct machine_file *m, const struct machine_file_rows *r, double *v,
                          int64_t *times, struct err *e)
{
    for (uint32_t i = 0; i < m->n; i++) {
        size_t n = gather(r, i, v, times);
        if (n < MACHINE_FILE_MIN_ROWS)
            return err_set(e, SHOAL_EINVAL,
                           "column %s has %zu values; at least %u are needed to learn from",
                           r->names[i], n, MACHINE_FILE_MIN_ROWS);
        channel_learn(&m->profiles[i], v, r->times ? times : NULL, n, r->interval_ms,
                      v + r->n_rows);
    }
    return 0;
}

static int learn_joint(struct machine_file *m, const struct machine_file_rows *r, struct err *e)
{
    if (m->n < 2 || m->n > JOINT_MAX_CHANNELS)
        return 0;
    double *z = mem_zalloc_n(r->n_rows, m->n * sizeof(*z));
    if (!z)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", r->n_rows);
    for (size_t i = 0; i < r->n_rows; i++)
        for (uint32_t k = 0; k < m->n; k++) {
            const struct profile *p = &m->profiles[k];
            double usual = channel_usual(p, r->times ? r->times[i] : -1);
            z[i * m->n + k] = (r->values[i * m->n + k] - usual) / p->spread;
        }
    int rc = joint_create(&m->joint, m->n, e);
    if (rc == 0)
        rc = joint_learn(m->joint, z, r->n_rows, e);
    mem_free(z);
    return rc;
}

int machine_file_fit(struct machine_file **out, const struct machine_file_rows *r, struct err *e)
{
    struct machine_file *m;
    int rc = make(&m, r->n, e);
    *out = NULL;
    if (rc < 0)
        return rc;
    double *v = mem_zalloc_n(r->n_rows + 1, 4 * sizeof(*v));
    int64_t *times = mem_zalloc_n(r->n_rows + 1, sizeof(*times));
    bool named = v && times;
    for (uint32_t i = 0; i < m->n && named; i++)
        named = (m->names[i] = mem_strdup(r->names[i])) != NULL;
    rc = named ? learn_channels(m, r, v, times, e)
               : err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", r->n_rows);
    if (rc == 0)
        rc = learn_joint(m, r, e);
    mem_free(v);
    mem_free(times);
    if (rc < 0)
        machine_file_destroy(m);
    else
        *out = m;
    return rc;
}

/* ---- writing ---- */

static void put_tails(struct json_out *j, const struct tail *t, uint32_t n)
{
    json_out_member_array(j, "tails");
    for (uint32_t i = 0; i < n; i++) {
        json_out_array(j);
        json_out_num(j, t[i].from);
        json_out_num(j, t[i].scale);
        json_out_num(j, t[i].share);
        json_out_num(j, t[i].gap);
        json_out_num(j, t[i].n);
        json_out_array_end(j);
    }
    json_out_array_end(j);
}

static void put_profile(struct json_out *j, const char *name, const struct profile *p)
{
    json_out_object(j);
    json_out_member_str(j, "name", name);
    json_out_member_num(j, "mean", p->mean);
    json_out_member_num(j, "spread", p->spread);
    json_out_member_num(j, "step", p->step);
    json_out_member_num(j, "plain_mean", p->plain_mean);
    json_out_member_num(j, "plain_spread", p->plain_spread);
    json_out_member_num(j, "most_out", p->most_out);
    json_out_member_num(j, "most_jump", p->most_jump);
    json_out_member_num(j, "most_long", p->most_long);
    json_out_member_num(j, "low", p->low);
    json_out_member_num(j, "high", p->high);
    json_out_member_num(j, "interval_ms", p->interval_ms);
    json_out_member_uint(j, "longest_run", p->longest_run);
    json_out_member_uint(j, "rows", p->n);
    put_tails(j, p->tails, CHANNEL_N_STATS);
    if (p->daily) {
        json_out_member_array(j, "day");
        for (uint32_t i = 0; i < CHANNEL_DAY_BINS; i++)
            json_out_float(j, p->day[i]);
        json_out_array_end(j);
    }
    json_out_object_end(j);
}

void machine_file_write(const struct machine_file *m, struct buf *out)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_member_str(&j, "type", TYPE);
    json_out_member_uint(&j, "version", VERSION);
    json_out_member_array(&j, "channels");
    for (uint32_t i = 0; i < m->n; i++)
        put_profile(&j, m->names[i], &m->profiles[i]);
    json_out_array_end(&j);
    if (m->joint) {
        json_out_member_object(&j, "joint");
        json_out_member_array(&j, "inverse");
        for (size_t i = 0; i < (size_t)m->n * m->n; i++)
            json_out_num(&j, joint_inverse(m->joint)[i]);
        json_out_array_end(&j);
        const struct joint_facts *f = joint_facts(m->joint);
        put_tails(&j, f->tails, JOINT_N_STATS);
        json_out_member_num(&j, "rows", f->rows);
        json_out_member_num(&j, "window", f->window);
        json_out_member_num(&j, "most_row", f->most_row);
        json_out_member_num(&j, "most_mean", f->most_mean);
        json_out_object_end(&j);
    }
    json_out_object_end(&j);
    buf_putc(out, '\n');
}

/* ---- reading ---- */

static const cJSON *member(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static int number(const cJSON *o, const char *name, double lo, double hi, double *out,
                  struct err *e)
{
    const cJSON *v = member(o, name);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= lo && v->valuedouble <= hi))
        return err_set(e, SHOAL_EFORMAT, "%s must be a number from %g to %g", name, lo, hi);
    *out = v->valuedouble;
    return 0;
}

static int read_numbers(const cJSON *list, const char *name, double *out, size_t n, struct err *e)
{
    const cJSON *v = cJSON_IsArray(list) ? list->child : NULL;
    for (size_t i = 0; i < n; i++, v = v->next) {
        if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
            return err_set(e, SHOAL_EFORMAT, "%s must be a list of %zu numbers", name, n);
        out[i] = v->valuedouble;
    }
    return v ? err_set(e, SHOAL_EFORMAT, "%s must be a list of %zu numbers", name, n) : 0;
}

static int read_tails(const cJSON *o, struct tail *t, uint32_t n, struct err *e)
{
    const cJSON *list = member(o, "tails"), *one = cJSON_IsArray(list) ? list->child : NULL;
    for (uint32_t i = 0; i < n; i++, one = one->next) {
        double v[5];
        if (!one)
            return err_set(e, SHOAL_EFORMAT, "tails must be a list of %u lists", n);
        int rc = read_numbers(one, "tails", v, 5, e);
        if (rc < 0)
            return rc;
        bool good = v[0] >= 0 && v[1] > 0 && v[2] >= 0 && v[2] <= 1 && v[3] > 0 && v[3] <= 1e3 &&
                    v[4] >= 0 && v[4] <= UINT32_MAX;
        if (!good)
            return err_set(e, SHOAL_EFORMAT, "tails hold values that no statistic has");
        t[i] = (struct tail){.from = v[0], .scale = v[1], .share = v[2], .gap = v[3], .n = v[4]};
    }
    return one ? err_set(e, SHOAL_EFORMAT, "tails must be a list of %u lists", n) : 0;
}

static int read_day(const cJSON *o, struct profile *p, struct err *e)
{
    double day[CHANNEL_DAY_BINS];
    const cJSON *list = member(o, "day");
    if (!list)
        return 0;
    int rc = read_numbers(list, "day", day, CHANNEL_DAY_BINS, e);
    for (uint32_t i = 0; rc == 0 && i < CHANNEL_DAY_BINS; i++) {
        if (!(fabs(day[i]) <= 1e30))
            rc = err_set(e, SHOAL_EFORMAT, "day holds a value that is too large");
        p->day[i] = rc == 0 ? (float)day[i] : 0;
    }
    p->daily = rc == 0;
    return rc;
}

static int read_profile(const cJSON *o, struct profile *p, struct err *e)
{
    const double most = 1e300;
    double run = 0, rows = 0;
    int rc = number(o, "mean", -most, most, &p->mean, e);
    rc = rc < 0 ? rc : number(o, "spread", 1e-300, most, &p->spread, e);
    rc = rc < 0 ? rc : number(o, "step", 1e-300, most, &p->step, e);
    rc = rc < 0 ? rc : number(o, "plain_mean", -1e9, 1e9, &p->plain_mean, e);
    rc = rc < 0 ? rc : number(o, "plain_spread", 0, 1e9, &p->plain_spread, e);
    rc = rc < 0 ? rc : number(o, "most_out", 0, 1e12, &p->most_out, e);
    rc = rc < 0 ? rc : number(o, "most_jump", 0, 1e12, &p->most_jump, e);
    rc = rc < 0 ? rc : number(o, "most_long", 0, 1e12, &p->most_long, e);
    rc = rc < 0 ? rc : number(o, "low", -most, most, &p->low, e);
    rc = rc < 0 ? rc : number(o, "high", p->low, most, &p->high, e);
    rc = rc < 0 ? rc : number(o, "interval_ms", 1e-3, 1e12, &p->interval_ms, e);
    rc = rc < 0 ? rc : number(o, "longest_run", 0, UINT32_MAX / 8, &run, e);
    rc = rc < 0 ? rc : number(o, "rows", 1, UINT32_MAX, &rows, e);
    rc = rc < 0 ? rc : read_tails(o, p->tails, CHANNEL_N_STATS, e);
    p->longest_run = rc == 0 ? (uint32_t)run : 0;
    p->n = rc == 0 ? (uint32_t)rows : 0;
    return rc < 0 ? rc : read_day(o, p, e);
}

static int read_channels(struct machine_file *m, const cJSON *list, struct err *e)
{
    const cJSON *one = list->child;
    for (uint32_t i = 0; i < m->n; i++, one = one->next) {
        const char *name = cJSON_GetStringValue(member(one, "name"));
        if (!name || !*name)
            return err_set(e, SHOAL_EFORMAT, "channel %u has no name", i + 1);
        m->names[i] = mem_strdup(name);
        if (!m->names[i])
            return err_set(e, SHOAL_ENOMEM, "out of memory");
        int rc = read_profile(one, &m->profiles[i], e);
        if (rc < 0)
            return err_wrap(e, "channel %.80s", name);
    }
    return 0;
}

static int read_joint(struct machine_file *m, const cJSON *o, struct err *e)
{
    struct joint_facts f = {0};
    size_t n = (size_t)m->n * m->n;
    if (!o)
        return 0;
    int rc = joint_create(&m->joint, m->n, e);
    double *inverse = rc == 0 ? mem_zalloc_n(n, sizeof(*inverse)) : NULL;
    if (rc == 0 && !inverse)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    if (rc == 0)
        rc = read_numbers(member(o, "inverse"), "inverse", inverse, n, e);
    if (rc == 0)
        rc = read_tails(o, f.tails, JOINT_N_STATS, e);
    if (rc == 0)
        rc = number(o, "rows", 1, UINT32_MAX, &f.rows, e);
    if (rc == 0)
        rc = number(o, "window", 1, 1e6, &f.window, e);
    if (rc == 0)
        rc = number(o, "most_row", 0, 1e300, &f.most_row, e);
    if (rc == 0)
        rc = number(o, "most_mean", 0, 1e300, &f.most_mean, e);
    if (rc == 0)
        joint_set(m->joint, inverse, &f);
    mem_free(inverse);
    return rc;
}

int machine_file_parse(struct machine_file **out, const char *json, size_t n, struct err *e)
{
    cJSON *o = cJSON_ParseWithLength(json, n);
    const char *type = cJSON_GetStringValue(member(o, "type"));
    const cJSON *list = member(o, "channels"), *version = member(o, "version");
    struct machine_file *m = NULL;
    int rc = 0;
    *out = NULL;
    if (!type || strcmp(type, TYPE) != 0)
        rc = err_set(e, SHOAL_EFORMAT, "this is not a file of `shoal anomaly fit`");
    else if (!cJSON_IsNumber(version) || version->valuedouble != VERSION)
        rc = err_set(e, SHOAL_EFORMAT,
                     "version must be %d: the file is of another program version; learn the "
                     "machine again with `shoal anomaly fit`",
                     VERSION);
    else if (!cJSON_IsArray(list))
        rc = err_set(e, SHOAL_EFORMAT, "channels must be a list");
    if (rc == 0)
        rc = make(&m, (uint32_t)cJSON_GetArraySize(list), e);
    if (rc == 0)
        rc = read_channels(m, list, e);
    if (rc == 0)
        rc = read_joint(m, member(o, "joint"), e);
    cJSON_Delete(o);
    if (rc < 0)
        machine_file_destroy(m);
    else
        *out = m;
    return rc;
}

int machine_file_open(struct machine_file **out, const char *path, struct err *e)
{
    struct buf text;
    *out = NULL;
    buf_init(&text, MAX_FILE_BYTES);
    int rc = file_read(path, &text, e);
    if (rc == 0 && text.rc < 0)
        rc = err_set(e, text.rc, "%s is too large", path);
    if (rc == 0 && (rc = machine_file_parse(out, buf_str(&text), text.len, e)) < 0)
        err_wrap(e, "%s", path);
    buf_fini(&text);
    return rc;
}
