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

/* The name of the pack's table in a language; English is the base of the others. */
static void table_name(char name[MAX_NAME], const char *language)
{
    const bool base = !*language || strcmp(language, "en") == 0;
    snprintf(name, MAX_NAME, TABLE "%s%s", base ? "" : "-", base ? "" : language);
}

static int open_one(struct home_table **out, const struct pack *p, const char *name, struct err *e)
{
    const struct pack_table *t = pack_find_table(p, name);
    *out = NULL;
    if (!t)
        return err_set(e, SHOAL_ENOTFOUND, "%s has no table \"%s\"", p->dir, name);
    int rc = pack_verify_table(t, e);
    if (rc == 0)
        rc = home_table_open(out, t->file.path, e);
    /* The file matches its manifest, so this program is too old for it. */
    return rc == SHOAL_EFORMAT ? err_wrap(e, "the models are of another version than this program")
                               : rc;
}

static int no_words(const char *who, const char *language, struct err *e)
{
    return err_set(e, SHOAL_EUNSUPPORTED,
                   "%s: there are no words for the language \"%s\" (models/home-*.json has them)",
                   who, language);
}

/* Is it a table of a language that t does not know yet? */
static bool is_other(const struct pack_table *x, const struct home_table *t)
{
    const size_t n = strlen(TABLE);
    const char *language = x->name[n] ? x->name + n + 1 : "en";
    return strncmp(x->name, TABLE, n) == 0 && (!x->name[n] || x->name[n] == '-') &&
           !home_table_in(t, language);
}

/* Adds the words of one more language, or with NULL of all that the pack has. */
static int add_languages(struct home_table *t, const struct pack *p, const char *only,
                         struct err *e)
{
    char name[MAX_NAME];
    int rc = 0;
    table_name(name, only ? only : "");
    if (only && !pack_find_table(p, name))
        return no_words("language", only, e);
    for (uint32_t i = 0; rc == 0 && i < p->n_tables; i++) {
        struct home_table *other;
        if (!is_other(&p->tables[i], t) || (only && strcmp(p->tables[i].name, name) != 0))
            continue;
        rc = open_one(&other, p, p->tables[i].name, e);
        if (rc == 0)
            home_table_add(t, other);
    }
    return rc;
}

/* The file at path, or the pack's in the language of a home file; home NULL: the usual one. */
static int open_table(struct home_table **out, const struct pack *p, const char *path,
                      const char *home, struct err *e)
{
    char name[MAX_NAME], language[HOME_FILE_LANGUAGE] = "";
    if (path)
        return home_table_open(out, path, e);
    int rc = home ? home_file_read_language(language, home, e) : 0;
    if (rc < 0)
        return rc;
    table_name(name, language);
    if (*language && !pack_find_table(p, name))
        return no_words(home, language, e);
    return open_one(out, p, name, e);
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
        rc = open_table(&p->table, pack, o->table, o->home, e);
    if (rc == 0 && o->language && !home_table_in(p->table, o->language))
        rc = pack ? add_languages(p->table, pack, o->language, e)
                  : no_words("language", o->language, e);
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
        rc = open_table(out, pack, path, home, e);
    if (rc == 0 && pack)
        rc = add_languages(*out, pack, NULL, e);
    if (rc < 0) {
        home_table_close(*out);
        *out = NULL;
    }
    pack_close(pack);
    return rc;
}
