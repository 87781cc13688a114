/* roll_call.h - who must be heard before a desired state that NATS has lost is written back.
 *
 * NATS may lose everything.  What was in it is then known to members only, perhaps to a single one:
 * an acknowledged change may have reached just that one.  So the member that writes the state back
 * calls the roll.  Every member answers with the number of the call, the version that it follows
 * and the highest fence that it knows; the newest copy is fetched, and is what is written back.
 *
 *   first second          nothing is written: members that nobody knows of may answer
 *   up to 3 s             all members that were there a minute ago, or are named in the copy
 *   up to 30 s            more than half of them
 *   then                  those that are there decide
 *
 * Until 30 s have passed nothing older than what anybody has reported is written back.
 *
 * Thread:    belongs to its owner, who locks it.
 * Ownership: the caller's storage; names are copied.
 * Failure:   none.  Of more than ROLL_CALL_MAX members the others do not count. */
#ifndef SHOAL_CLUSTER_CONTROL_ROLL_CALL_H
#define SHOAL_CLUSTER_CONTROL_ROLL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#define ROLL_CALL_MAX 256u
#define ROLL_CALL_NAME 128u

/* A version of the state, and the fence of the controller that wrote it. */
struct roll_call_mark {
    uint64_t version, writer;
};

struct roll_call_member {
    char name[ROLL_CALL_NAME];
    struct roll_call_mark mark;
    uint64_t answered; /* number of the last call that it answered */
    uint64_t heard_ns; /* 0: only named */
    bool named;        /* in the copy that is to be written back */
};

struct roll_call {
    struct roll_call_member members[ROLL_CALL_MAX];
    uint32_t n;
    uint64_t number;   /* of the present call; 0: none */
    uint64_t since_ns; /* when it began */
};

/* A member was heard. */
void roll_call_heard(struct roll_call *r, const char *name, struct roll_call_mark mark,
                     uint64_t number, uint64_t now_ns);
/* The state is lost: begins a call, unless one is under way.  number: not 0. */
void roll_call_begin(struct roll_call *r, uint64_t number, uint64_t now_ns);
/* The copy that is to be written back names this member. */
void roll_call_name(struct roll_call *r, const char *name);
/* NATS has a state. */
void roll_call_end(struct roll_call *r);
/* self: name of this member, which knows what it knows.  have: the best copy; version 0: none. */
bool roll_call_is_complete(const struct roll_call *r, const char *self, struct roll_call_mark have,
                           uint64_t now_ns);
/* a is newer than b. */
bool roll_call_newer(struct roll_call_mark a, struct roll_call_mark b);

#endif
