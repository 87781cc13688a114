/* table.c - see table.h. */
#include "eval/table.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"

#define MAX_COLS 65536u

void table_fini(struct table *t)
{
    for (uint32_t i = 0; t->names && i < t->n_cols; i++)
        mem_free(t->names[i]);
    mem_free(t->names);
    mem_free(t->kinds);
    mem_free(t->values);
    *t = (struct table){0};
}

uint32_t table_time_column(const struct table *t)
{
    for (uint32_t i = 0; i < t->n_cols; i++)
        if (t->kinds[i] == TABLE_TIMES)
            return i;
    return UINT32_MAX;
}

uint32_t table_column(const struct table *t, const char *name)
{
    for (uint32_t i = 0; t->names && i < t->n_cols; i++)
        if (strcmp(t->names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* Adds one row of missing values. */
static double *new_row(struct table *t)
{
    if (t->n_rows == t->cap_rows) {
        size_t cap = t->cap_rows ? t->cap_rows * 2 : 1024, bytes;
        if (!mem_mul(&bytes, cap, (size_t)t->n_cols * sizeof(double)))
            return NULL;
        double *values = mem_realloc(t->values, bytes);
        if (!values)
            return NULL;
        t->values = values;
        t->cap_rows = cap;
    }
    double *row = t->values + t->n_rows++ * t->n_cols;
    for (uint32_t i = 0; i < t->n_cols; i++)
        row[i] = NAN;
    return row;
}

/* ---- CSV ------------------------------------------------------------------------------------ */

static char *trim(char *s)
{
    s += strspn(s, " \t\"");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\"\r", s[n - 1]))
        s[--n] = '\0';
    return s;
}

bool table_time(const char *text, double *seconds)
{
    static const int month_days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int y, mo, d, h = 0, mi = 0, n = 0, zh = 0, zm = 0;
    double s = 0;
    char sign;
    if (sscanf(text, "%4d-%2d-%2d%n", &y, &mo, &d, &n) != 3 || n < 8)
        return false;
    text += n;
    if (*text == ' ' || *text == 'T') {
        if (sscanf(text + 1, "%2d:%2d%n", &h, &mi, &n) != 2)
            return false;
        text += 1 + n;
        if (*text == ':') {
            char *end;
            if (!ascii_is_digit(text[1]))
                return false;
            s = strtod(text + 1, &end);
            text = end;
        }
    }
    if (sscanf(text, "%c%2d:%2d%n", &sign, &zh, &zm, &n) == 3 && (sign == '+' || sign == '-')) {
        text += n;
        zh = sign == '-' ? -zh : zh;
        zm = sign == '-' ? -zm : zm;
    } else if (*text == 'Z') {
        text++;
    }
    if (*text || y < 1 || mo < 1 || mo > 12 || d < 1 || d > 31 || h < 0 || h > 23 || mi < 0 ||
        mi > 59 || !(s >= 0 && s < 61) || abs(zh) > 23 || abs(zm) > 59)
        return false;
    int before = y - 1, leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    int days = before * 365 + before / 4 - before / 100 + before / 400 + month_days[mo - 1] +
               (leap && mo > 2) + d - 1 - 719162;
    *seconds = days * 86400.0 + (h - zh) * 3600.0 + (mi - zm) * 60.0 + s;
    return true;
}

/* TABLE_EMPTY: a missing value. */
static enum table_kind read_cell(char *cell, double *v)
{
    static const char *const missing[] = {"", "NaN", "nan", "NA", "null"};
    char *end;
    cell = trim(cell);
    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
        if (strcmp(cell, missing[i]) == 0) {
            *v = NAN;
            return TABLE_EMPTY;
        }
    *v = strtod(cell, &end);
    if (*end == '\0')
        return TABLE_NUMBERS;
    if (table_time(cell, v))
        return TABLE_TIMES;
    *v = NAN;
    return TABLE_TEXT;
}

/* True if a value of this kind fits the column; the first value decides the kind. */
static bool fits(struct table *t, uint32_t column, enum table_kind kind)
{
    enum table_kind *k = &t->kinds[column];
    if (*k == TABLE_EMPTY)
        *k = kind;
    return kind == *k || kind == TABLE_EMPTY || *k == TABLE_TEXT;
}

/* Allocates column data, once n_cols is known. */
static int make_columns(struct table *t, struct err *e)
{
    t->kinds = mem_zalloc_n(t->n_cols, sizeof(*t->kinds));
    return t->kinds ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for %u columns", t->n_cols);
}

static char separator_of(const char *line)
{
    size_t n = strcspn(line, "\n");
    return memchr(line, ';', n)    ? ';'
           : memchr(line, ',', n)  ? ','
           : memchr(line, '\t', n) ? '\t'
                                   : ' ';
}

/* Splits off the next cell of the line; NULL: no more. */
static char *next_cell(char **line, char separator)
{
    char *cell = *line;
    if (!cell)
        return NULL;
    char *end = strchr(cell, separator);
    if (end)
        *end = '\0';
    *line = end ? end + 1 : NULL;
    return cell;
}

static int read_names(struct table *t, char *line, char separator, struct err *e)
{
    char *cell;
    t->names = mem_zalloc_n(t->n_cols, sizeof(*t->names));
    for (uint32_t i = 0; t->names && i < t->n_cols && (cell = next_cell(&line, separator)); i++)
        if (!(t->names[i] = mem_strdup(trim(cell))))
            return err_set(e, SHOAL_ENOMEM, "out of memory for the names of columns");
    return t->names ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the names of columns");
}

static int read_csv_row(struct table *t, char *line, char separator, uint64_t number, struct err *e)
{
    double *row = new_row(t);
    uint32_t i = 0;
    char *cell;
    if (!row)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", t->n_rows);
    for (; (cell = next_cell(&line, separator)); i++) {
        if (i >= t->n_cols)
            return err_set(e, SHOAL_EFORMAT, "line %llu: more than %u columns",
                           (unsigned long long)number, t->n_cols);
        if (!fits(t, i, read_cell(cell, &row[i])))
            return err_set(e, SHOAL_EFORMAT, "line %llu: \"%.40s\" is not a %s",
                           (unsigned long long)number, trim(cell),
                           t->kinds[i] == TABLE_TIMES ? "time" : "number");
        if (t->kinds[i] == TABLE_TEXT)
            row[i] = NAN;
    }
    if (i != t->n_cols)
        return err_set(e, SHOAL_EFORMAT, "line %llu has %u columns, the first line has %u",
                       (unsigned long long)number, i, t->n_cols);
    return 0;
}

/* The first line has names if one of its cells is neither a number nor a time. */
static int begin_csv(struct table *t, const char *line, char separator, bool *names, struct err *e)
{
    char *copy = mem_strdup(line), *rest = copy, *cell;
    double v;
    if (!copy)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a line");
    *names = false;
    for (; (cell = next_cell(&rest, separator)); t->n_cols++)
        *names |= read_cell(cell, &v) == TABLE_TEXT;
    mem_free(copy);
    return t->n_cols <= MAX_COLS
               ? make_columns(t, e)
               : err_set(e, SHOAL_ELIMIT, "out of memory for %u columns", t->n_cols);
}

/* ---- JSON lines ----------------------------------------------------------------------------- */

static int begin_json(struct table *t, const cJSON *v, struct err *e)
{
    const cJSON *c;
    int n = cJSON_GetArraySize(v);
    if (n <= 0 || n > (int)MAX_COLS)
        return err_set(e, SHOAL_EFORMAT, "line 1 has no values");
    t->n_cols = (uint32_t)n;
    int rc = make_columns(t, e);
    if (rc < 0 || !cJSON_IsObject(v))
        return rc;
    t->names = mem_zalloc_n(t->n_cols, sizeof(*t->names));
    uint32_t i = 0;
    cJSON_ArrayForEach(c, v)
    {
        if (!t->names || !(t->names[i++] = mem_strdup(c->string)))
            return err_set(e, SHOAL_ENOMEM, "out of memory for the names of columns");
    }
    return 0;
}

static int read_json_row(struct table *t, const cJSON *v, uint64_t number, struct err *e)
{
    const cJSON *c;
    uint32_t i = 0;
    double *row = new_row(t);
    if (!row)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", t->n_rows);
    cJSON_ArrayForEach(c, v)
    {
        uint32_t at = t->names && c->string ? table_column(t, c->string) : i;
        if (at >= t->n_cols)
            return err_set(e, SHOAL_EFORMAT,
                           "line %llu has a value that the first line does not have",
                           (unsigned long long)number);
        enum table_kind kind = TABLE_NUMBERS;
        if (cJSON_IsNumber(c) || cJSON_IsBool(c))
            row[at] = cJSON_IsNumber(c) ? c->valuedouble : cJSON_IsTrue(c);
        else if (cJSON_IsNull(c))
            kind = TABLE_EMPTY;
        else
            kind = cJSON_IsString(c) && table_time(c->valuestring, &row[at]) ? TABLE_TIMES
                                                                             : TABLE_TEXT;
        if (!fits(t, at, kind) || (kind == TABLE_TEXT && !t->names))
            return err_set(e, SHOAL_EFORMAT, "line %llu: value %u is not a number",
                           (unsigned long long)number, at + 1);
        i++;
    }
    return 0;
}

static int json_line(struct table *t, const char *line, uint64_t number, struct err *e)
{
    cJSON *v = cJSON_Parse(line);
    int rc = 0;
    if (!cJSON_IsArray(v) && !cJSON_IsObject(v))
        rc = err_set(e, SHOAL_EFORMAT, "line %llu is neither a JSON array nor an object",
                     (unsigned long long)number);
    if (rc == 0 && t->n_cols == 0)
        rc = begin_json(t, v, e);
    if (rc == 0)
        rc = read_json_row(t, v, number, e);
    cJSON_Delete(v);
    return rc;
}

int table_line(struct table *t, char *line, struct err *e)
{
    bool names = false;
    int rc = 0;
    t->n_lines++;
    size_t n = strlen(line);
    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    if (!*line)
        return 0;
    bool json = *line == '[' || *line == '{';
    if (json ? t->separator != 0 : !t->separator && t->n_cols > 0)
        return err_set(e, SHOAL_EFORMAT, "line %llu: the file mixes JSON and CSV",
                       (unsigned long long)t->n_lines);
    if (json)
        return json_line(t, line, t->n_lines, e);
    if (!t->separator) {
        t->separator = separator_of(line);
        rc = begin_csv(t, line, t->separator, &names, e);
    }
    if (rc < 0)
        return rc;
    return names ? read_names(t, line, t->separator, e)
                 : read_csv_row(t, line, t->separator, t->n_lines, e);
}

int table_parse(struct table *t, char *text, struct err *e)
{
    char *save = NULL;
    int rc = 0;
    *t = (struct table){0};
    for (char *line = strtok_r(text, "\n", &save); line && rc == 0;
         line = strtok_r(NULL, "\n", &save))
        rc = table_line(t, line, e);
    if (rc == 0 && t->n_rows == 0)
        rc = err_set(e, SHOAL_EFORMAT,
                     t->names ? "no row of numbers after the names in the first line" : "no rows");
    if (rc < 0)
        table_fini(t);
    return rc;
}
