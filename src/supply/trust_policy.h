/* trust_policy.h - who may sign which models, and whether a model must be signed.
 *
 * The signature of a model is looked for at PATH.sig and PATH.minisig, in the folder as model.sig,
 * in that of a file too, beside the files of the store, and in a folder of signatures as
 * SHA256.sig. Every byte that the model is loaded from is read and compared; no earlier hash is
 * believed.
 *
 * Thread:    immutable after create; any number of readers.  Checking reads the disk.
 * Ownership: create gives, destroy takes back (NULL is fine).
 * Failure:   SHOAL_EINVAL: refused, and the text says why and what to do; SHOAL_EIO, SHOAL_ENOMEM,
 *            SHOAL_ECANCELLED. */
#ifndef SHOAL_SUPPLY_TRUST_POLICY_H
#define SHOAL_SUPPLY_TRUST_POLICY_H

#include <stdatomic.h>

#include "supply/signer_anchor.h"

struct trust_policy;

struct trust_policy_signer {
    const char *name, *key, *certificates, *subject;
    const char *const *models; /* patterns of names, as of a shell */
    size_t n_models;           /* 0: every model */
    int64_t until_s;           /* Unix time from when on it is not believed; 0: always */
};

struct trust_policy_opts {
    const struct trust_policy_signer *signers;
    uint32_t n_signers;
    const char *signatures; /* folder of signatures; NULL: none */
    /* Public keys (files, or how signatures name them) that are believed no longer, whoever has
     * them, and models (SHA-256) that are loaded no longer, whoever has signed them. */
    const char *const *revoked;
    size_t n_revoked;
    bool require;  /* models without a trusted signature are refused */
    bool included; /* but not those that come with Shoal */
};

SHOAL_MUST_CHECK int trust_policy_create(struct trust_policy **out,
                                         const struct trust_policy_opts *o, struct err *e);
void trust_policy_destroy(struct trust_policy *p);

/* Where the signature of the model at a path is, looked for in all places but the folder of
 * signatures; false: nowhere. */
bool trust_policy_signature(char *out, size_t cap, const char *path);

struct trust_policy_model {
    const char *const *names; /* all must be allowed */
    size_t n_names;
    const char *path;
    const char *signature; /* file; NULL: it is looked for */
    bool included;         /* comes with Shoal */
};
/* by->method SIGNER_NONE: it may be used, but nobody that is trusted has signed it. found: where
 * the signature is; may be NULL. */
SHOAL_MUST_CHECK int trust_policy_check(const struct trust_policy *p,
                                        const struct trust_policy_model *m,
                                        const _Atomic bool *stop, struct signed_by *by,
                                        struct buf *found, struct err *e);

#endif
