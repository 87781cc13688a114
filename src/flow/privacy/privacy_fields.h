/* privacy_fields.h - the texts of a request that may contain personal data, and the matches in
 * them.
 *
 * Thread:    the owner's.
 * Ownership: everything is in the arena of the request.
 * Failure:   SHOAL_ENOMEM; SHOAL_EINVAL: the request has tokens instead of text. */
#ifndef SHOAL_FLOW_PRIVACY_FIELDS_H
#define SHOAL_FLOW_PRIVACY_FIELDS_H

#include "base/err.h"
#include "flow/privacy/privacy_sink.h"
#include "flow/request.h"
#include "privacy/pii.h"

struct privacy_field {
    const char **text; /* address of the text in the request */
    size_t *n;         /* address of its length; NULL: NUL-terminated */
    size_t bytes;
    const char *name;     /* for messages: "messages" */
    int32_t input;        /* of an inference; -1: none */
    bool prose;           /* names are searched too */
    struct pii_hit *hits; /* in order, without overlaps */
    uint32_t n_hits, cap;
};

struct privacy_fields {
    struct request *request;
    struct privacy_field *list;
    uint32_t n, cap;
};

/* Copies the request's arrays of texts, so that the codec's stay unchanged. */
SHOAL_MUST_CHECK int privacy_fields_open(struct privacy_fields *f, struct request *r);
/* By rules. */
SHOAL_MUST_CHECK int privacy_fields_find(struct privacy_fields *f, unsigned kinds);
/* Adds a model's hit; ignored if it overlaps another. */
SHOAL_MUST_CHECK int privacy_fields_add(struct privacy_fields *f, uint32_t field,
                                        const struct pii_hit *h);
/* Replaces the matches. map NULL: by masks. inputs: [n_inputs] of an inference, filled. */
SHOAL_MUST_CHECK int privacy_fields_replace(struct privacy_fields *f, struct pseudonyms_map *map,
                                            struct privacy_input *inputs);

#endif
