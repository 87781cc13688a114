/* db.h - a SQLite file: opening with our settings, statements, and errors as SHOAL_E*.
 *
 * Thread:    a struct db has a lock; hold it (db_lock) from db_prepare to db_finish.
 * Ownership: open/close over the caller's storage; statements belong to the database and are kept.
 * Failure:   SHOAL_EIO with SQLite's text; SHOAL_EBUSY: another process holds the file;
 *            SHOAL_EFORMAT: it is no database, or not one of ours. */
#ifndef SHOAL_STORE_DB_H
#define SHOAL_STORE_DB_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct db {
    sqlite3 *handle; /* NULL: closed */
    pthread_mutex_t lock;
    char *path;
    bool has_lock;
};

/* Required schema of a file, which is created if new. kind: its application_id; version: its
 * user_version. */
struct db_schema {
    uint32_t kind, version;
    const char *sql; /* creates the tables of a new file */
};

/* create: make the file (mode 0600) if it is not there. */
SHOAL_MUST_CHECK int db_open(struct db *d, const char *path, const struct db_schema *schema,
                             bool create, struct err *e);
void db_close(struct db *d); /* a zeroed struct is fine */
void db_lock(struct db *d);
void db_unlock(struct db *d);

/* One or more statements without results. */
SHOAL_MUST_CHECK int db_exec(struct db *d, const char *sql, struct err *e);
/* NULL: e says why. */
sqlite3_stmt *db_prepare(struct db *d, const char *sql, struct err *e);
/* 1: a row; 0: the end; or an error. */
SHOAL_MUST_CHECK int db_step(struct db *d, sqlite3_stmt *s, struct err *e);
/* Runs a statement to its end and finishes it; s NULL: the error of db_prepare. */
SHOAL_MUST_CHECK int db_run(struct db *d, sqlite3_stmt *s, struct err *e);
/* First column of the first row; missing if there is none. */
SHOAL_MUST_CHECK int db_number(struct db *d, const char *sql, int64_t missing, int64_t *out,
                               struct err *e);
SHOAL_MUST_CHECK int db_begin(struct db *d, struct err *e);
/* rc 0: commits; else rolls back and returns rc. */
SHOAL_MUST_CHECK int db_end(struct db *d, int rc, struct err *e);

#endif
