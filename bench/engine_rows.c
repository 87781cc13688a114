/* engine_rows.c - rows of the engine benchmark: medians, the table, build/bench.json. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)
#define N_COLUMNS 8

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sorted(double *out, const double *v, size_t n)
{
    memcpy(out, v, n * sizeof(*v));
    qsort(out, n, sizeof(*out), compare);
}

double engine_median(const double *v, size_t n)
{
    double s[ENGINE_MAX_ROUNDS];
    if (n == 0 || n > ENGINE_MAX_ROUNDS)
        return NAN;
    sorted(s, v, n);
    return n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

double engine_spread(const double *v, size_t n)
{
    double s[ENGINE_MAX_ROUNDS];
    if (n < 4 || n > ENGINE_MAX_ROUNDS)
        return NAN;
    sorted(s, v, n);
    return (s[n * 3 / 4] - s[n / 4]) / 2 / engine_median(v, n);
}

cJSON *engine_number(double v)
{
    return isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull();
}

cJSON *engine_pair(double ours, double peer)
{
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, engine_number(ours));
    cJSON_AddItemToArray(list, engine_number(peer));
    return list;
}

int engine_rows_init(struct engine_rows *r, const char *jsonl, struct err *e)
{
    r->list = cJSON_CreateArray();
    r->jsonl = jsonl ? fopen(jsonl, "we") : NULL;
    if (jsonl && !r->jsonl)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", jsonl, strerror(errno));
    return 0;
}

void engine_rows_fini(struct engine_rows *r)
{
    cJSON_Delete(r->list);
    if (r->jsonl)
        fclose(r->jsonl);
    *r = (struct engine_rows){0};
}

void engine_rows_add(struct engine_rows *r, const struct engine_row *row)
{
    cJSON *v = cJSON_CreateObject();
    cJSON_AddStringToObject(v, "part", "engine");
    cJSON_AddStringToObject(v, "name", row->name);
    cJSON_AddItemToObject(v, "ours", engine_number(row->ours));
    cJSON_AddItemToObject(v, "peer", engine_number(row->peer));
    cJSON_AddStringToObject(v, "unit", row->unit);
    cJSON_AddItemToObject(v, "ratio", engine_number(row->ratio));
    cJSON_AddItemToObject(v, "roofline", engine_number(row->roofline));
    cJSON_AddItemToObject(v, "target",
                          row->target[0] ? cJSON_CreateString(row->target) : cJSON_CreateNull());
    cJSON_AddItemToObject(v, "met",
                          isnan(row->met) ? cJSON_CreateNull() : cJSON_CreateBool(row->met > 0));
    while (row->more && row->more->child) {
        cJSON *item = cJSON_DetachItemViaPointer(row->more, row->more->child);
        cJSON_AddItemToObject(v, item->string, item);
    }
    cJSON_Delete(row->more);
    cJSON_AddItemToArray(r->list, v);
    if (r->jsonl) {
        char *text = cJSON_PrintUnformatted(v);
        fprintf(r->jsonl, "%s\n", text);
        fflush(r->jsonl);
        cJSON_free(text);
    }
}

static double number(const cJSON *row, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(row, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *text(const cJSON *row, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, key));
    return s ? s : "-";
}

double engine_rows_ours(const struct engine_rows *r, const char *name)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, r->list)
    {
        if (strcmp(text(row, "name"), name) == 0)
            return number(row, "ours");
    }
    return NAN;
}

/* ---- the table ---- */

static void digits(char *out, size_t n, double v)
{
    if (isnan(v))
        snprintf(out, n, "-");
    else
        snprintf(out, n, "%.*f", v >= 100 ? 0 : v >= 10 ? 1 : 2, v);
}

static void cells(const cJSON *row, char out[N_COLUMNS][96])
{
    const double ratio = number(row, "ratio"), roof = number(row, "roofline");
    const double below = number(row, "peer_below");
    const cJSON *met = cJSON_GetObjectItemCaseSensitive(row, "met");
    const bool doubt = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "limit_doubtful"));
    snprintf(out[0], 96, "%s", text(row, "name"));
    digits(out[1], 96, number(row, "ours"));
    if (isnan(below))
        digits(out[2], 96, number(row, "peer"));
    else
        snprintf(out[2], 96, "< %.2g", below);
    snprintf(out[3], 96, "%s", text(row, "unit"));
    snprintf(out[4], 96, "%.2f", ratio);
    snprintf(out[5], 96, "%.0f %%%s", roof * 100, doubt ? "?" : "");
    if (isnan(ratio))
        snprintf(out[4], 96, "-");
    if (isnan(roof))
        snprintf(out[5], 96, "-");
    snprintf(out[6], 96, "%s", text(row, "target"));
    snprintf(out[7], 96, "%s", cJSON_IsNull(met) ? "-" : cJSON_IsTrue(met) ? "yes" : "NO");
}

static void print_line(char line[N_COLUMNS][96], const int width[N_COLUMNS])
{
    for (size_t c = 0; c < N_COLUMNS; c++) {
        const bool left = c == 0 || c == 6;
        printf("%s%*s", c ? "  " : "", left ? -width[c] : width[c], line[c]);
    }
    putchar('\n');
}

void engine_rows_print(const struct engine_rows *r, int first)
{
    char head[N_COLUMNS][96] = {"name",  "ours",     "peer",   "unit",
                                "ratio", "roofline", "target", "met"};
    char line[N_COLUMNS][96];
    int width[N_COLUMNS];
    const cJSON *row = cJSON_GetArrayItem(r->list, first), *from = row, *note;
    if (!row)
        return;
    for (size_t c = 0; c < N_COLUMNS; c++)
        width[c] = (int)strlen(head[c]);
    for (; row; row = row->next) {
        cells(row, line);
        for (size_t c = 0; c < N_COLUMNS; c++)
            width[c] = (int)strlen(line[c]) > width[c] ? (int)strlen(line[c]) : width[c];
    }
    print_line(head, width);
    for (row = from; row; row = row->next) {
        cells(row, line);
        print_line(line, width);
    }
    for (row = from; row; row = row->next) {
        cJSON_ArrayForEach(note, cJSON_GetObjectItemCaseSensitive(row, "notes"))
            printf("  %s: %s\n", text(row, "name"), cJSON_GetStringValue(note));
    }
    putchar('\n');
    fflush(stdout);
}

void engine_rows_judge(const struct engine_rows *r, const char *path)
{
    int met = 0, judged = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, r->list)
    {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(row, "met");
        judged += !cJSON_IsNull(m);
        met += cJSON_IsTrue(m);
    }
    printf("%d of %d targets met; all rows in %s\n", met, judged, path);
}

/* ---- build/bench.json ---- */

/* The file's contents; an empty object if it does not exist. */
static cJSON *read_file(const char *path)
{
    struct buf b;
    FILE *f = fopen(path, "re");
    if (!f)
        return cJSON_CreateObject();
    buf_init(&b, MAX_FILE_BYTES);
    for (char *at; (at = buf_room(&b, 65536));) {
        size_t n = fread(at, 1, 65536, f);
        if (n == 0)
            break;
        buf_used(&b, n);
    }
    fclose(f);
    cJSON *all = cJSON_Parse(buf_str(&b));
    buf_fini(&b);
    if (cJSON_IsObject(all))
        return all;
    fprintf(stderr, "%s is not a JSON object: starting a new file\n", path);
    cJSON_Delete(all);
    return cJSON_CreateObject();
}

int engine_rows_write(const struct engine_rows *r, const char *path, const cJSON *about,
                      struct err *e)
{
    char tmp[1024];
    cJSON *all = read_file(path), *rows = cJSON_CreateArray(), *row;
    cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(all, "rows");
    while (old && (row = cJSON_DetachItemFromArray(old, 0))) {
        if (strcmp(text(row, "part"), "engine") == 0)
            cJSON_Delete(row);
        else
            cJSON_AddItemToArray(rows, row);
    }
    cJSON_Delete(old);
    cJSON_ArrayForEach(row, r->list) cJSON_AddItemToArray(rows, cJSON_Duplicate(row, true));
    cJSON_AddItemToObject(all, "rows", rows);
    cJSON_DeleteItemFromObjectCaseSensitive(all, "engine");
    cJSON_AddItemToObject(all, "engine", cJSON_Duplicate(about, true));

    snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    engine_make_folders(path);
    char *out = cJSON_Print(all);
    FILE *f = fopen(tmp, "we");
    bool ok = f && fprintf(f, "%s\n", out) > 0;
    if (f && fclose(f) != 0)
        ok = false;
    ok = ok && rename(tmp, path) == 0;
    const int why = errno;
    cJSON_free(out);
    cJSON_Delete(all);
    return ok ? 0 : err_set(e, SHOAL_EIO, "cannot write %s: %s", path, strerror(why));
}
