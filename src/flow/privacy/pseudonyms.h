/* pseudonyms.h - pseudonyms for personal data, and their resolution.
 *
 * A mark is "[email-1f2e3d4c]": the kind, and 32 bits of an HMAC over client, conversation and
 * value. So a value has the same mark in every turn of a conversation, and marks of different
 * clients cannot be compared. Values of conversations are kept in memory, a bounded number of them,
 * so that an answer can repeat what an earlier turn said; they are never written anywhere.
 *
 * Thread:    struct pseudonyms: any.  struct pseudonyms_map: its owner's.
 * Ownership: create/destroy.  A map lives in an arena.
 * Failure:   SHOAL_ELIMIT: too many values in one request; SHOAL_ENOMEM. */
#ifndef SHOAL_FLOW_PSEUDONYMS_H
#define SHOAL_FLOW_PSEUDONYMS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "privacy/pii.h"

struct pseudonyms;

#define PSEUDONYMS_KEY_BYTES 32u
#define PSEUDONYMS_MAX_VALUES 4096u /* values per request */
#define PSEUDONYMS_MAX_KEPT 4096u   /* values of all conversations; a client evicts its own first */
#define PSEUDONYMS_MARK_BYTES 20u   /* longest mark, with its NUL */

/* key: NULL: a random one. */
SHOAL_MUST_CHECK int pseudonyms_create(struct pseudonyms **out,
                                       const uint8_t key[PSEUDONYMS_KEY_BYTES], struct err *e);
void pseudonyms_destroy(struct pseudonyms *p);

struct pseudonyms_value {
    uint32_t id;
    enum pii_kind kind;
    const char *text;
    size_t n;
};

/* The values of one request. */
struct pseudonyms_map {
    struct pseudonyms *all;
    struct arena *arena;
    uint64_t scope; /* of its client and conversation */
    bool session;   /* values are kept for the next turn */
    const char *tenant, *conversation;
    struct pseudonyms_value *values;
    uint32_t n, cap;
};

/* conversation "": none. */
void pseudonyms_map_init(struct pseudonyms_map *m, struct pseudonyms *all, struct arena *arena,
                         const char *tenant, const char *conversation);
/* Returns the value's mark; from now on it can be resolved. */
SHOAL_MUST_CHECK int pseudonyms_mark(struct pseudonyms_map *m, enum pii_kind kind, const char *text,
                                     size_t n, char out[PSEUDONYMS_MARK_BYTES]);

enum pseudonyms_scan { PSEUDONYMS_NO, PSEUDONYMS_PART, PSEUDONYMS_WHOLE };
/* Whether a mark begins at p, which is '[': no, perhaps (the text ends too early), or complete;
 * *bytes: its length. Case does not matter. */
enum pseudonyms_scan pseudonyms_scan(const char *p, size_t n, size_t *bytes);
/* The value of a complete mark of n bytes; NULL: unknown. Valid until the next call, or as long as
 * the arena if it belongs to this request. */
const char *pseudonyms_find(struct pseudonyms_map *m, const char *mark, size_t n, size_t *n_value);

#endif
