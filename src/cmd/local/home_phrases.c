/* home_phrases.c - see home_phrases.h. */
#include "cmd/local/home_phrases.h"

#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_names.h"
#include "apps/home/site/home_open.h"

static int put_names(struct buf *b, const char *path, struct err *e)
{
    const struct home_open_opts o = {.path = path};
    struct home_table *t = NULL;
    struct home_file *f = NULL;
    int rc = ask_pack_table(&t, NULL, NULL, path, e);
    if (rc == 0)
        rc = home_open_file(&f, t, &o, e);
    if (rc == 0)
        home_names_put(b, f);
    home_file_unref(f);
    home_table_close(t);
    return rc;
}

int home_phrases_put(struct buf *b, const char *path, const char *more, struct err *e)
{
    int rc = path ? put_names(b, path, e) : 0;
    if (rc == 0 && more)
        buf_puts(b, more);
    return rc == 0 && b->rc < 0 ? err_set(e, b->rc, "out of memory for phrases") : rc;
}
