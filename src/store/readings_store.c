/* readings_store.c - see readings_store.h. */
#include "store/readings_store.h"

#include "base/mem.h"
#include "store/db.h"

#define AT_ONCE "1000" /* rows that are removed before the size is looked at again */

static const struct db_schema schema = {
    0x53686f52, /* "ShoR" */
    1,
    "CREATE TABLE sensor(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL);"
    "CREATE TABLE reading(time INTEGER NOT NULL, sensor INTEGER NOT NULL REFERENCES sensor(id),"
    " value REAL NOT NULL, PRIMARY KEY(time, sensor)) WITHOUT ROWID;"};

struct readings_store {
    struct db db;
    struct readings_store_opts opts;
};

int readings_store_open(struct readings_store **out, const char *path,
                        const struct readings_store_opts *o, struct err *e)
{
    struct readings_store *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the history");
    s->opts = *o;
    int rc = db_open(&s->db, path, &schema, !o->must_exist, e);
    if (rc < 0) {
        readings_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void readings_store_close(struct readings_store *s)
{
    if (!s)
        return;
    db_close(&s->db);
    mem_free(s);
}

static int add_row(struct db *d, sqlite3_stmt *sensor, sqlite3_stmt *reading,
                   const struct readings_store_row *r, struct err *e)
{
    sqlite3_reset(sensor);
    sqlite3_bind_text(sensor, 1, r->sensor, -1, SQLITE_STATIC);
    sqlite3_bind_text(sensor, 2, r->unit, -1, SQLITE_STATIC);
    int rc = db_step(d, sensor, e);
    if (rc < 0)
        return rc;
    sqlite3_reset(reading);
    sqlite3_bind_int64(reading, 1, r->time_ms);
    sqlite3_bind_text(reading, 2, r->sensor, -1, SQLITE_STATIC);
    sqlite3_bind_double(reading, 3, r->value);
    rc = db_step(d, reading, e);
    return rc < 0 ? rc : 0;
}

static int add_rows(struct db *d, const struct readings_store_row *rows, size_t n, struct err *e)
{
    sqlite3_stmt *sensor = db_prepare(
        d,
        "INSERT INTO sensor(name, unit) VALUES(?, ?)"
        " ON CONFLICT(name) DO UPDATE SET unit = excluded.unit WHERE unit <> excluded.unit",
        e);
    sqlite3_stmt *reading = db_prepare(d,
                                       "INSERT OR REPLACE INTO reading(time, sensor, value)"
                                       " VALUES(?1, (SELECT id FROM sensor WHERE name = ?2), ?3)",
                                       e);
    int rc = sensor && reading ? 0 : SHOAL_EIO;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_row(d, sensor, reading, &rows[i], e);
    sqlite3_finalize(sensor);
    sqlite3_finalize(reading);
    return rc;
}

/* Under the lock. */
static int used_bytes(struct db *d, uint64_t *out, struct err *e)
{
    int64_t pages = 0, unused = 0, size = 0;
    int rc = db_number(d, "PRAGMA page_count", 0, &pages, e);
    if (rc == 0)
        rc = db_number(d, "PRAGMA freelist_count", 0, &unused, e);
    if (rc == 0)
        rc = db_number(d, "PRAGMA page_size", 0, &size, e);
    *out = (uint64_t)(pages - unused) * (uint64_t)size;
    return rc;
}

static int remove_old(struct readings_store *s, int64_t now_ms, struct err *e)
{
    struct db *d = &s->db;
    uint64_t bytes = 0;
    int rc = 0;
    if (s->opts.keep_ms > 0) {
        sqlite3_stmt *old = db_prepare(d, "DELETE FROM reading WHERE time < ?", e);
        if (old)
            sqlite3_bind_int64(old, 1, now_ms - s->opts.keep_ms);
        rc = db_run(d, old, e);
    }
    while (rc == 0 && s->opts.max_bytes > 0 && (rc = used_bytes(d, &bytes, e)) == 0 &&
           bytes > s->opts.max_bytes) {
        rc = db_exec(d,
                     "DELETE FROM reading WHERE (time, sensor) IN"
                     " (SELECT time, sensor FROM reading ORDER BY time LIMIT " AT_ONCE ")",
                     e);
        if (rc == 0 && sqlite3_changes(d->handle) == 0)
            break; /* the bound is smaller than an empty file */
    }
    return rc;
}

int readings_store_add(struct readings_store *s, const struct readings_store_row *rows, size_t n,
                       int64_t now_ms, struct err *e)
{
    struct db *d = &s->db;
    db_lock(d);
    int rc = db_begin(d, e);
    if (rc == 0) {
        rc = add_rows(d, rows, n, e);
        if (rc == 0)
            rc = remove_old(s, now_ms, e);
        rc = db_end(d, rc, e);
    }
    db_unlock(d);
    return rc;
}

int readings_store_each(struct readings_store *s, const struct readings_store_query *q,
                        int (*fn)(void *ctx, const struct readings_store_row *r), void *ctx,
                        struct err *e)
{
    struct db *d = &s->db;
    int rc = 0, got = 0;
    db_lock(d);
    sqlite3_stmt *st = db_prepare(
        d,
        "SELECT s.name, s.unit, r.time, r.value FROM reading r JOIN sensor s ON s.id = r.sensor"
        " WHERE r.time >= ?1 AND (?2 = 0 OR r.time < ?2) AND (?3 IS NULL OR s.name = ?3)"
        " ORDER BY r.time, r.sensor",
        e);
    if (st) {
        sqlite3_bind_int64(st, 1, q->from_ms);
        sqlite3_bind_int64(st, 2, q->until_ms);
        if (q->sensor)
            sqlite3_bind_text(st, 3, q->sensor, -1, SQLITE_STATIC);
    }
    while (st && rc == 0 && (got = db_step(d, st, e)) == 1) {
        const struct readings_store_row r = {
            .sensor = (const char *)sqlite3_column_text(st, 0),
            .unit = (const char *)sqlite3_column_text(st, 1),
            .time_ms = sqlite3_column_int64(st, 2),
            .value = sqlite3_column_double(st, 3),
        };
        rc = fn(ctx, &r);
    }
    sqlite3_finalize(st);
    db_unlock(d);
    return !st ? SHOAL_EIO : rc < 0 ? rc : got < 0 ? got : 0;
}
