/* made_tree.h - a folder with files that a test makes, as /sys has them.
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_MADE_TREE_H
#define SHOAL_TESTS_MADE_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct made_tree {
    char root[64];
};

static inline void made_tree_open(struct made_tree *t)
{
    snprintf(t->root, sizeof(t->root), "/tmp/shoal-tree-XXXXXX");
    assert_non_null(mkdtemp(t->root));
}

/* Writes a file; the folders on the way to it are made. */
static inline void made_tree_put(const struct made_tree *t, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", t->root, name);
    for (char *p = path + strlen(t->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        (void)!mkdir(path, 0700);
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline int made_tree_remove_one(const char *path, const struct stat *st, int kind,
                                       struct FTW *f)
{
    (void)st, (void)kind, (void)f;
    return remove(path);
}

static inline void made_tree_close(struct made_tree *t)
{
    nftw(t->root, made_tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
