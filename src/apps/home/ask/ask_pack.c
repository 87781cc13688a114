/* ask_pack.c - see ask_pack.h. */
#include "apps/home/ask/ask_pack.h"

#include <stdio.h>
#include <string.h>

#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_open.h"
#include "host/pack.h"
#include "shoal/shoal.h"

#define TABLE "home" /* its name in the manifest; "home-de" of another language */
#define MAX_NAME 32u

static int open_model(struct shoal_engine **out, const struct pack *p, const char *name,
                      const struct ask_pack_opts *o, struct err *e)
{
    const struct pack_model *m = pack_find(p, name);
    if (!m)
        return err_set(e, SHOAL_ENOTFOUND, "%s has no model \"%s\"", p->dir, name);
    struct shoal_engine_opts eo = {.size = sizeof(eo),
                                   .int8 = m->int8,
                                   .n_threads = o->n_threads,
                                   .progress = o->progress,
                                   .progress_ctx = o->progress_ctx};
    int rc = pack_verify(m, e);
    return rc < 0 ? rc : shoal_engine_open(out, m->open, &eo, e);
}

/* An engine that the caller lends, or the pack's model of that name. */
static int take_engine(struct shoal_engine **out, bool *lent, struct shoal_engine *given,
                       const struct pack *p, const char *name, const struct ask_pack_opts *o,
                       struct err *e)
{
    *lent = given != NULL;
    *out = given;
    return given ? 0 : open_model(out, p, name, o, e);
}

/* The name of the pack's table in a language, or with NULL in that of a home file; home NULL: the
 * usual one. */
static int table_name(char *name, size_t cap, const char *said, const char *home, struct err *e)
{
    char language[HOME_FILE_LANGUAGE] = "";
    int rc = home && !said ? home_file_read_language(language, home, e) : 0;
    said = said ? said : language;
    snprintf(name, cap, TABLE "%s%s", *said ? "-" : "", said);
    return rc;
}

static int verify_table(const struct pack_table **out, const struct pack *p, const char *name,
                        struct err *e)
{
    *out = pack_find_table(p, name);
    return *out ? pack_verify_table(*out, e)
                : err_set(e, SHOAL_ENOTFOUND, "%s has no table \"%s\"", p->dir, name);
}

static int open_table(struct home_table **out, const struct pack *p, const char *path,
                      const char *language, const char *home, struct err *e)
{
    char name[MAX_NAME];
    const struct pack_table *t = NULL;
    if (path)
        return home_table_open(out, path, e);
    int rc = table_name(name, sizeof(name), language, home, e);
    if (rc == 0 && !pack_find_table(p, name))
        /* English is the base of the others */
        snprintf(name, sizeof(name), "%s", strcmp(name, TABLE "-en") == 0 ? TABLE : name);
    if (rc == 0)
        rc = verify_table(&t, p, TABLE, e);
    if (rc == 0 && strcmp(name, TABLE) != 0 && !pack_find_table(p, name))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s: there are no words for the language \"%s\" (models/home-*.json has "
                       "them)",
                       language ? "language" : home, name + sizeof(TABLE));
    if (rc == 0)
        rc = verify_table(&t, p, name, e);
    if (rc < 0)
        return rc;
    rc = home_table_open(out, t->file.path, e);
    /* The file matches its manifest, so this program is too old for it. */
    return rc == SHOAL_EFORMAT ? err_wrap(e, "the models are of another version than this program")
                               : rc;
}

/* What texts may be about: the home file that was given, or the pack's demo home. */
static int use_home(struct ask_pack *p, const struct pack *pack, const struct ask_pack_opts *o,
                    struct err *e)
{
    const struct home_open_opts ho = {.path = o->home, .models = o->dir};
    struct home_file *f = NULL;
    if (!o->home && (o->table || !pack)) /* another table is about another home */
        return 0;
    int rc = home_open_file(&f, p->table, &ho, e);
    if (rc == 0)
        ask_use_file(p->ask, f);
    home_file_unref(f);
    return rc;
}

int ask_pack_open(struct ask_pack *p, const struct ask_pack_opts *o, struct err *e)
{
    struct pack *pack = NULL;
    *p = (struct ask_pack){0};
    bool all_given = o->table && o->reader && (o->reply || o->no_reply);
    int rc = all_given ? 0 : pack_open(&pack, o->dir, e);
    if (rc == 0)
        rc = open_table(&p->table, pack, o->table, o->language, o->home, e);
    if (rc == 0)
        rc = take_engine(&p->reader, &p->lent_reader, o->reader, pack, p->table->reader, o, e);
    if (rc == 0 && !o->no_reply && p->table->reply)
        rc = take_engine(&p->reply, &p->lent_reply, o->reply, pack, p->table->reply, o, e);
    if (rc == 0 && !o->parts_only)
        rc = ask_create(&p->ask, p->table, NULL, p->reader, p->reply, e);
    if (rc == 0 && p->ask)
        rc = use_home(p, pack, o, e);
    pack_close(pack);
    if (rc < 0)
        ask_pack_close(p);
    return rc;
}

void ask_pack_close(struct ask_pack *p)
{
    ask_destroy(p->ask);
    if (!p->lent_reply)
        shoal_engine_close(p->reply);
    if (!p->lent_reader)
        shoal_engine_close(p->reader);
    home_table_close(p->table);
    *p = (struct ask_pack){0};
}

int ask_pack_table(struct home_table **out, const char *dir, const char *path, const char *home,
                   struct err *e)
{
    struct pack *pack = NULL;
    *out = NULL;
    int rc = path ? 0 : pack_open(&pack, dir, e);
    if (rc == 0)
        rc = open_table(out, pack, path, NULL, home, e);
    pack_close(pack);
    return rc;
}
