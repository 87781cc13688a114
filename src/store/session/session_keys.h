/* session_keys.h - encrypts conversations, with a key for each tenant (the name of an API key).
 *
 * The key file has lines "TENANT KEY", KEY being 64 hex digits. The tenant "*" stands for all
 * others: their keys are derived from its key and their names (HKDF). AES-256-GCM with a random
 * nonce; a ciphertext is bound to one tenant and one conversation.
 *
 * Thread:    immutable after open.
 * Ownership: open/close.  Keys are wiped on close.
 * Failure:   SHOAL_EFORMAT (file and line; or bytes that do not open), SHOAL_EINVAL (no key for the
 *            tenant; a file that others may read), SHOAL_EIO. */
#ifndef SHOAL_STORE_SESSION_SESSION_KEYS_H
#define SHOAL_STORE_SESSION_SESSION_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct session_keys;

#define SESSION_KEYS_BYTES 32u
#define SESSION_KEYS_OVERHEAD 29u /* bytes more than the text: form, nonce, tag */

/* A missing file is created, with a random key for "*" and readable only by its owner. */
SHOAL_MUST_CHECK int session_keys_open(struct session_keys **out, const char *path, struct err *e);
/* The text of a file; name is for messages. */
SHOAL_MUST_CHECK int session_keys_parse(struct session_keys **out, const char *text, size_t n,
                                        const char *name, struct err *e);
void session_keys_close(struct session_keys *k);
/* Appends the encrypted bytes. */
SHOAL_MUST_CHECK int session_keys_seal(const struct session_keys *k, const char *tenant,
                                       const char *id, const void *p, size_t n, struct buf *out,
                                       struct err *e);
/* SHOAL_EFORMAT: another key, tenant or conversation, or the bytes were changed. */
SHOAL_MUST_CHECK int session_keys_unseal(const struct session_keys *k, const char *tenant,
                                         const char *id, const void *p, size_t n, struct buf *out,
                                         struct err *e);

#endif
