/* roll_call.c - see roll_call.h. */
#include "cluster/control/roll_call.h"

#include <stdio.h>
#include <string.h>

#define S_NS UINT64_C(1000000000)
#define LISTEN_NS S_NS
#define ALL_NS (3 * S_NS)
#define MAJORITY_NS (30 * S_NS)
#define THERE_NS (60 * S_NS) /* a member that was silent for longer is not waited for */

bool roll_call_newer(struct roll_call_mark a, struct roll_call_mark b)
{
    return a.version > b.version || (a.version == b.version && a.writer > b.writer);
}

static struct roll_call_member *find(struct roll_call *r, const char *name)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(r->members[i].name, name) == 0)
            return &r->members[i];
    return NULL;
}

/* Room for one more: the one that was heard longest ago gives way. */
static struct roll_call_member *add(struct roll_call *r, const char *name)
{
    struct roll_call_member *m = &r->members[0];
    if (r->n < ROLL_CALL_MAX)
        m = &r->members[r->n++];
    else
        for (uint32_t i = 1; i < r->n; i++)
            if (r->members[i].heard_ns < m->heard_ns)
                m = &r->members[i];
    *m = (struct roll_call_member){.heard_ns = 0};
    snprintf(m->name, sizeof(m->name), "%s", name);
    return m;
}

void roll_call_heard(struct roll_call *r, const char *name, struct roll_call_mark mark,
                     uint64_t number, uint64_t now_ns)
{
    struct roll_call_member *m = find(r, name);
    if (!m)
        m = add(r, name);
    m->mark = mark;
    m->answered = number;
    m->heard_ns = now_ns;
}

void roll_call_begin(struct roll_call *r, uint64_t number, uint64_t now_ns)
{
    if (r->number)
        return;
    r->number = number;
    r->since_ns = now_ns;
    for (uint32_t i = 0; i < r->n; i++)
        r->members[i].named = false;
}

void roll_call_name(struct roll_call *r, const char *name)
{
    struct roll_call_member *m = find(r, name);
    if (!m && r->n < ROLL_CALL_MAX)
        m = add(r, name);
    if (m)
        m->named = true;
}

void roll_call_end(struct roll_call *r)
{
    r->number = 0;
}

/* It was there a minute before the call, or came since. */
static bool is_there(const struct roll_call *r, const struct roll_call_member *m)
{
    return m->heard_ns && m->heard_ns + THERE_NS >= r->since_ns;
}

bool roll_call_is_complete(const struct roll_call *r, const char *self, struct roll_call_mark have,
                           uint64_t now_ns)
{
    const uint64_t passed = r->number ? now_ns - r->since_ns : 0;
    uint32_t n = 1, n_answered = 1; /* this member */
    if (passed >= MAJORITY_NS)
        return true;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct roll_call_member *m = &r->members[i];
        if (strcmp(m->name, self) == 0 || (!m->named && !is_there(r, m)))
            continue;
        if (is_there(r, m) && roll_call_newer(m->mark, have))
            return false;
        n++;
        n_answered += m->answered == r->number;
    }
    if (passed < LISTEN_NS)
        return false;
    return n_answered == n || (passed >= ALL_NS && 2 * n_answered > n);
}
