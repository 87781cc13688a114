/* yaml_in.h - reads a YAML document by tables of keys: every key is known, values have units and
 * ranges, and an error names file, line and column.
 *
 * Thread:    belongs to its caller.
 * Ownership: strings that a table fills belong to the filled struct (mem_free).  Nodes are borrowed
 *            from the document.
 * Failure:   SHOAL_EFORMAT with "name:line:column: message", or SHOAL_ENOMEM. */
#ifndef SHOAL_WIRE_YAML_IN_H
#define SHOAL_WIRE_YAML_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yaml.h>

#include "base/err.h"

enum yaml_in_kind {
    YAML_IN_BYTES,     /* size_t: "1.5GiB" */
    YAML_IN_BYTES_PER, /* double, bytes per second: "12GB/s" */
    YAML_IN_MS,        /* uint32_t: "500ms", "2m" */
    YAML_IN_U32,
    YAML_IN_I32,    /* -1000 to 1000 */
    YAML_IN_NUM,    /* double, not negative */
    YAML_IN_SIGNED, /* double, finite */
    YAML_IN_RATE,   /* double, per second: "5/s", "30/m" */
    YAML_IN_SHARE,  /* double from 0 to 1: "0.2", "20%" */
    YAML_IN_BOOL,   /* true, yes, false, no */
    YAML_IN_STR,    /* char * */
    YAML_IN_STRS,   /* struct yaml_in_strs: a list of texts, or one text */
    YAML_IN_CUSTOM, /* the key's function reads it */
};

struct yaml_in {
    yaml_document_t *doc;
    const char *name; /* of the file, for messages */
    void *ctx;        /* the caller's: what custom functions fill */
    struct err *e;
    const char *text; /* of the document */
    size_t n;
};

typedef int (*yaml_in_fn)(struct yaml_in *r, yaml_node_t *v, const char *name);

struct yaml_in_key {
    const char *name;
    enum yaml_in_kind kind;
    size_t offset; /* in the struct that is filled */
    yaml_in_fn custom;
};

#define YAML_IN_MAX_STRS 256u
struct yaml_in_strs {
    char **v;
    uint32_t n;
};
void yaml_in_strs_fini(struct yaml_in_strs *s);
bool yaml_in_strs_has(const struct yaml_in_strs *list, const char *s);
/* Appends copies.  SHOAL_ELIMIT: more than YAML_IN_MAX_STRS. */
SHOAL_MUST_CHECK int yaml_in_strs_add(struct yaml_in_strs *s, const char *const *from, size_t n,
                                      struct err *e);

/* Reads the document's top map into `into`.  An empty document is accepted and fills nothing. */
SHOAL_MUST_CHECK int yaml_in_parse(const char *text, size_t n, const char *name,
                                   const struct yaml_in_key *table, size_t n_keys, void *into,
                                   void *ctx, struct err *e);
/* Calls fn with the document's top node; not for an empty document. */
SHOAL_MUST_CHECK int yaml_in_document(const char *text, size_t n, const char *name, yaml_in_fn fn,
                                      void *ctx, struct err *e);
/* One value of a table's key, into the member at k->offset of `into`. */
SHOAL_MUST_CHECK int yaml_in_value(struct yaml_in *r, const struct yaml_in_key *k, yaml_node_t *v,
                                   void *into);
/* A map inside the document; `where` is its name in messages.  A table has at most 64 keys. */
SHOAL_MUST_CHECK int yaml_in_map(struct yaml_in *r, yaml_node_t *map,
                                 const struct yaml_in_key *table, size_t n_keys, void *into,
                                 const char *where);
/* Calls fn for each item of a list; a single value counts as a list of one. */
SHOAL_MUST_CHECK int yaml_in_each(struct yaml_in *r, yaml_node_t *list, const char *name,
                                  yaml_in_fn fn);
/* The value of a key of a map; NULL: the node is no map, or has no such key. */
const yaml_node_t *yaml_in_find(struct yaml_in *r, const yaml_node_t *map, const char *name);
/* The text of a scalar, borrowed; NULL for a list or map. */
const char *yaml_in_scalar(const yaml_node_t *v);
/* Fills the error with the position of a node; returns SHOAL_EFORMAT. */
int yaml_in_fail(struct yaml_in *r, const yaml_node_t *at, const char *fmt, ...) SHOAL_PRINTF(3, 4);
/* The same with the position of a byte of a scalar's text, however the scalar is quoted. */
int yaml_in_fail_at(struct yaml_in *r, const yaml_node_t *at, size_t byte, const char *fmt, ...)
    SHOAL_PRINTF(4, 5);
/* The position of a byte of a scalar's text in the document; both from 1. */
void yaml_in_place(const struct yaml_in *r, const yaml_node_t *at, size_t byte, size_t *line,
                   size_t *column);

#endif
