/* eval_rows.c - see eval_rows.h. */
#include "eval/eval_rows.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file/lines.h"
#include "base/mem.h"
#include "base/room.h"

static int add_row(struct eval_rows *rows, const char *path, uint64_t number, const char *line,
                   size_t n, struct err *e)
{
    if (!room_make(&rows->rows, &rows->cap, rows->n, sizeof(*rows->rows), 1024))
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu rows", rows->n);
    cJSON *json = cJSON_ParseWithLength(line, n);
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        return err_set(e, SHOAL_EFORMAT, "%s:%llu: not a JSON object", path,
                       (unsigned long long)number);
    }
    rows->rows[rows->n++] = (struct eval_row){json, path, number};
    return 0;
}

int eval_rows_read(struct eval_rows *rows, const char *path, struct err *e)
{
    struct lines lines;
    uint64_t number = 0;
    char *line;
    size_t n;
    int rc = 0, got;
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %m", path);
    lines_init(&lines, fd);
    lines.name = path;
    while (rc == 0 && (got = lines_next(&lines, -1, &line, &n, e)) != LINES_END) {
        number++;
        if (got < 0)
            rc = got;
        else if (n > 0)
            rc = add_row(rows, path, number, line, n, e);
    }
    lines_fini(&lines);
    if (fd != STDIN_FILENO)
        close(fd);
    if (rc == 0 && rows->n == 0)
        rc = err_set(e, SHOAL_EFORMAT, "%s has no rows", path);
    return rc;
}

void eval_rows_cut(struct eval_rows *rows, size_t n)
{
    for (; rows->n > n; rows->n--)
        cJSON_Delete(rows->rows[rows->n - 1].json);
}

void eval_rows_fini(struct eval_rows *rows)
{
    eval_rows_cut(rows, 0);
    mem_free(rows->rows);
    *rows = (struct eval_rows){0};
}

int eval_rows_text(const struct eval_row *r, const char *const *keys, const char **out,
                   struct err *e)
{
    for (size_t i = 0; keys[i]; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(r->json, keys[i]);
        if (cJSON_IsString(v)) {
            *out = v->valuestring;
            return 0;
        }
    }
    return err_set(e, SHOAL_EFORMAT, "%s:%llu: no text under \"%s\"", r->file,
                   (unsigned long long)r->line, keys[0]);
}
