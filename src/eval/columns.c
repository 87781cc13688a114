/* columns.c - see columns.h. */
#include "eval/columns.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const char *const label_names[] = {"label", "anomaly", "is_anomaly"};
/* Usual names of columns that are not measurements. */
static const char *const other_names[] = {"time",  "timestamp", "datetime",   "date",
                                          "label", "anomaly",   "is_anomaly", "changepoint"};
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

void columns_fini(struct columns *c)
{
    mem_free(c->at);
    *c = (struct columns){0};
}

uint32_t columns_label(const struct table *t, const char *name)
{
    if (name)
        return table_column(t, name);
    for (size_t i = 0; i < ARRAY_LEN(label_names); i++)
        if (table_column(t, label_names[i]) != UINT32_MAX)
            return table_column(t, label_names[i]);
    return UINT32_MAX;
}

static const char *name_of(const struct table *t, uint32_t i)
{
    return t->names && t->names[i] ? t->names[i] : "without a name";
}

static int check_numbers(const struct columns *c, const struct table *t, struct err *e)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (t->kinds[c->at[i]] > TABLE_NUMBERS)
            return err_set(e, SHOAL_EFORMAT, "column %s contains %s, not numbers",
                           name_of(t, c->at[i]),
                           t->kinds[c->at[i]] == TABLE_TIMES ? "times" : "text");
    return 0;
}

static int by_list(struct columns *c, const struct table *t, const char *list, uint32_t n_inputs,
                   struct err *e)
{
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, ",");
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)len, p);
        uint32_t at = table_column(t, name);
        if (at == UINT32_MAX)
            return err_set(e, SHOAL_EINVAL, "--columns: %s is not in the file", name);
        if (c->n == (n_inputs ? n_inputs : t->n_cols))
            return err_set(e, SHOAL_EINVAL, "--columns: more than %s %u",
                           n_inputs ? "the model's" : "the file's", c->n);
        c->at[c->n++] = at;
        p += len + (p[len] == ',');
    }
    if (c->n == 0 || (n_inputs && c->n != n_inputs))
        return err_set(e, SHOAL_EINVAL, "--columns names %u columns, the model reads %u", c->n,
                       n_inputs ? n_inputs : 1);
    return 0;
}

static bool by_name(struct columns *c, const struct table *t, const struct shoal_engine *engine,
                    uint32_t n_inputs)
{
    for (c->n = 0; t->names && c->n < n_inputs; c->n++) {
        const char *name = shoal_input_name(engine, c->n);
        if (!name || (c->at[c->n] = table_column(t, name)) == UINT32_MAX)
            break;
    }
    return n_inputs > 0 && c->n == n_inputs;
}

static bool is_other(const struct table *t, uint32_t i)
{
    for (size_t k = 0; t->names && t->names[i] && k < ARRAY_LEN(other_names); k++)
        if (strcasecmp(t->names[i], other_names[k]) == 0)
            return true;
    return false;
}

/* Chooses every column of numbers and notes those that are ignored. */
static int all_numbers(struct columns *c, const struct table *t, uint32_t n_inputs,
                       const char *label, struct err *e)
{
    size_t used = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_cols; i++) {
        bool labels = label && t->names && t->names[i] && strcmp(t->names[i], label) == 0;
        if (t->kinds[i] <= TABLE_NUMBERS && !labels && (n_inputs || !is_other(t, i))) {
            if (!n_inputs || n < n_inputs)
                c->at[n] = i;
            n++;
        } else if (!labels && used < sizeof(c->left_out)) {
            used += (size_t)snprintf(c->left_out + used, sizeof(c->left_out) - used, "%s%s",
                                     used ? ", " : "", name_of(t, i));
        }
    }
    c->n = n;
    if (n_inputs ? n == n_inputs : n > 0)
        return 0;
    c->n = 0;
    if (!n_inputs)
        return err_set(e, SHOAL_EFORMAT,
                       "no column of numbers; choose columns with --columns A,B,...");
    return err_set(e, SHOAL_EFORMAT,
                   "rows have %u values, the model reads %u; choose columns with --columns A,B,...",
                   n, n_inputs);
}

int columns_choose(struct columns *c, const struct table *t, const struct shoal_engine *engine,
                   const char *list, const char *label, struct err *e)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(engine, &info);
    *c = (struct columns){0};
    c->at = mem_zalloc_n((size_t)t->n_cols + info.dim, sizeof(*c->at));
    if (!c->at)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u columns", t->n_cols);
    int rc = 0;
    if (list)
        rc = by_list(c, t, list, info.dim, e);
    else if (!by_name(c, t, engine, info.dim))
        rc = all_numbers(c, t, info.dim, label, e);
    if (rc == 0)
        rc = check_numbers(c, t, e);
    if (rc < 0)
        columns_fini(c);
    return rc;
}

int columns_channels(struct columns *c, const struct table *t, const char *list, struct err *e)
{
    *c = (struct columns){0};
    c->at = mem_zalloc_n(t->n_cols, sizeof(*c->at));
    if (!c->at)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u columns", t->n_cols);
    int rc = list ? by_list(c, t, list, 0, e) : all_numbers(c, t, 0, NULL, e);
    if (rc == 0)
        rc = check_numbers(c, t, e);
    if (rc < 0)
        columns_fini(c);
    return rc;
}

double *columns_gather(const struct columns *c, const struct table *t)
{
    double *values = mem_zalloc_n(t->n_rows, c->n * sizeof(*values));
    for (size_t r = 0; values && r < t->n_rows; r++)
        for (uint32_t i = 0; i < c->n; i++)
            values[r * c->n + i] = t->values[r * t->n_cols + c->at[i]];
    return values;
}
