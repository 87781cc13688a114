/* session_note.h - condenses messages that a conversation can no longer keep into a short note.
 *
 * The model is one that summarizes; one that generates is asked in words.
 *
 * Thread:    the owner's.
 * Ownership: part of the caller's job, which must live until `done` was called; the note is valid
 *            during that call.
 * Failure:   typed, to `done`. */
#ifndef SHOAL_KNOWLEDGE_SESSION_NOTE_H
#define SHOAL_KNOWLEDGE_SESSION_NOTE_H

#include "base/buf.h"
#include "flow/flow.h"
#include "knowledge/embedding.h"

struct session_note {
    struct flow_owner *owner;
    struct embedding_who who;
    const char *model;
    const char *text; /* what is condensed; must stay */
    size_t text_bytes;
    void (*done)(struct session_note *x, const struct failure *f); /* f NULL: success */
    struct buf note;
    /* private */
    struct sink sink;
    bool asked, failed; /* asked: in words */
    struct failure why;
};

/* All members are set except note and private ones. */
void session_note_run(struct session_note *x);

#endif
