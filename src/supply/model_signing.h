/* model_signing.h - signs a model on disk, and compares one with what was signed.
 *
 * Every file of a folder is covered, hidden ones too; left out are .git, .github, .gitattributes,
 * .gitignore and the signature itself. Symbolic links and files that are not regular are refused:
 * what they lead to is not part of the model.
 *
 * Thread:    any; reads all files of the model.
 * Ownership: a report's names live in its arena.
 * Failure:   SHOAL_EFORMAT: the model differs, the text names the files; SHOAL_EIO, SHOAL_ELIMIT,
 *            SHOAL_EINVAL (a link), SHOAL_ENOMEM. */
#ifndef SHOAL_SUPPLY_MODEL_SIGNING_H
#define SHOAL_SUPPLY_MODEL_SIGNING_H

#include "supply/oms_bundle.h"

struct identity_list;

#define MODEL_SIGNING_FILE "model.sig" /* in a folder; FILE.sig beside a file */
#define MODEL_SIGNING_MAX_SHOWN 64u

struct model_signing_opts {
    const char *path;                /* of the model */
    const char *key;                 /* PEM file with the private key */
    const char *certificate;         /* its certificate; NULL: none, the key is named */
    const char *const *intermediate; /* files with more certificates */
    uint32_t n_intermediate;
    const char *out; /* where the signature will be: left out if it is in the model */
};
SHOAL_MUST_CHECK int model_signing_sign(struct buf *out, const struct model_signing_opts *o,
                                        uint32_t *n_files, struct err *e);

enum model_signing_change {
    MODEL_SIGNING_CHANGED,
    MODEL_SIGNING_MISSING,
    MODEL_SIGNING_EXTRA, /* not signed */
};

struct model_signing_report {
    struct arena arena;
    uint32_t n_checked, n_differences;
    struct {
        enum model_signing_change change;
        const char *name;
    } shown[MODEL_SIGNING_MAX_SHOWN];
};
void model_signing_report_init(struct model_signing_report *r);
void model_signing_report_fini(struct model_signing_report *r);
const char *model_signing_change_name(enum model_signing_change c);

/* A model on disk, exactly as it was signed. signature: its path, left out. */
SHOAL_MUST_CHECK int model_signing_compare(struct model_signing_report *r,
                                           const struct oms_bundle *b, const char *path,
                                           const char *signature, struct err *e);
/* The files that a model is loaded from, with their hashes (identity_read). A folder may lack what
 * no model reads; a single file may be one of a folder that was signed as a whole. */
SHOAL_MUST_CHECK int model_signing_compare_read(struct model_signing_report *r,
                                                const struct oms_bundle *b,
                                                const struct identity_list *l, struct err *e);

#endif
