/* audit_log.h - an append-only log of requests, refusals and acts of administration.
 *
 *   DIR/audit-000001.jsonl ...   lines (audit_line.h); the highest number is written
 *   DIR/head                     how many lines there are, as of the last checkpoint
 *   DIR/audit.key, audit.pub     Ed25519, made at the first start; the key for its owner only
 *
 * A line is in the kernel's hands when a call returns: kill -9 loses none; at most the last one is
 * torn, and the next process says so.  A power cut may lose what the disk had not written yet.
 * Every AUDIT_CHECKPOINT_LINES lines, at the ends of files and of the process, a checkpoint signs
 * the chain. Of refusals at the door at most 20 a second are written; the next one says how many
 * more there were. No text, address or id of a client is written: hashes, and the name of the key.
 *
 * Thread:    any; calls write a few hundred bytes to a file, under a lock.
 * Ownership: open gives, close takes back (NULL is fine). One process at a time.
 * Failure:   SHOAL_EBUSY: another process writes; SHOAL_EIO, SHOAL_EFORMAT: the log is damaged. */
#ifndef SHOAL_SUPPLY_AUDIT_LOG_H
#define SHOAL_SUPPLY_AUDIT_LOG_H

#include "supply/audit_line.h"

struct audit_log;

#define AUDIT_CHECKPOINT_LINES 256u
#define AUDIT_LOG_FILE "audit-%06u.jsonl"

struct audit_log_opts {
    const char *dir;
    size_t file_bytes;    /* a file that is larger is followed by another; 0: 64 MiB */
    uint32_t keep;        /* files; 0: all */
    bool serve_when_full; /* requests go on if the log cannot be written; the gap is logged */
    bool syslog;          /* also to the system's log */
};

SHOAL_MUST_CHECK int audit_log_open(struct audit_log **out, const struct audit_log_opts *o,
                                    struct err *e);
void audit_log_close(struct audit_log *a);
/* Whether requests may be served: the log can be written, or the policy is to go on. */
bool audit_log_ready(struct audit_log *a);

struct audit_entry { /* texts may be NULL: left out */
    enum audit_kind kind;
    const char *client, *node, *model, *signer, *decision, *reason, *act;
    const uint8_t *sum;             /* of the model */
    const uint8_t *prompt, *answer; /* SHA-256 */
    uint32_t tokens;
    uint64_t took_ns; /* 0: left out */
};
void audit_log_put(struct audit_log *a, const struct audit_entry *x);

#endif
