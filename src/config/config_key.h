/* config_key.h - the table of the configuration file: one row for each key.
 *
 * The rows are the single source for a key: parsing, default and limits, `shoal config explain`,
 * the JSON Schema and docs/CONFIG.md. To add a key, add a row to config_table.c and the member that
 * it fills to its struct.
 *
 * A path names a key: "limits.body".  "models[].path" is the key `path` of each entry of the list
 * `models`.  A map or list comes before its own keys.
 *
 * Thread: constant. */
#ifndef SHOAL_CONFIG_CONFIG_KEY_H
#define SHOAL_CONFIG_CONFIG_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/yaml_in.h"

enum config_type {
    CONFIG_BYTES,  /* size_t: "1.5GiB" */
    CONFIG_MS,     /* uint32_t: "500ms", "2m" */
    CONFIG_U32,    /* uint32_t */
    CONFIG_I32,    /* int32_t */
    CONFIG_NUM,    /* double */
    CONFIG_SHARE,  /* double from 0 to 1: "0.2", "20%" */
    CONFIG_BOOL,   /* bool */
    CONFIG_STR,    /* char * */
    CONFIG_STRS,   /* struct yaml_in_strs; max: number of entries */
    CONFIG_CHOICE, /* uint32_t: which of the words in `choices` */
    CONFIG_MAP,    /* its keys fill the same struct as those around the map */
    CONFIG_ITEMS,  /* a list of maps; max: number of entries */
};

/* When a changed value takes effect. */
enum config_when { CONFIG_LIVE, CONFIG_START };

/* One entry of a list was read into `item`; take moves out what it keeps and leaves NULL. parent:
 * the struct that has the list. Fails with yaml_in_fail at `at`. */
typedef int (*config_take_fn)(struct yaml_in *r, yaml_node_t *at, void *item, void *parent);

struct config_key {
    const char *path;
    enum config_type type;
    size_t offset;        /* in the struct that is filled; CONFIG_ITEMS: bytes of an entry */
    const char *fallback; /* default, in the file's syntax; NULL: none, see text */
    double min, max;      /* both 0: the limits of the type */
    const char *choices;  /* "f16|q8" */
    enum config_when when;
    bool needed;         /* required in an entry of a list */
    bool secret;         /* its value is not shown */
    bool short_form;     /* CONFIG_ITEMS: an entry may be its name alone */
    config_take_fn take; /* CONFIG_ITEMS */
    /* CONFIG_ITEMS: frees what the entry holds besides its keys, after take; NULL: nothing. */
    void (*drop)(void *item);
    const char *text; /* description, in sentences */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* The path's last part: "path" of "models[].path". */
const char *config_key_leaf(const struct config_key *k);
/* Whether k is directly in the map or list `parent`; NULL: at the top. */
bool config_key_in(const struct config_key *k, const struct config_key *parent);
/* Iterates over the words of `choices`; NULL: the end. */
const char *config_key_choice(const struct config_key *k, uint32_t i, size_t *n_bytes);

#endif
