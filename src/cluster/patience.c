/* patience.c - see patience.h. */
#include "cluster/patience.h"

#define MS_NS 1000000ull
#define TOTAL_MS 300000u
#define ANY_VERSION 4u /* of what it may wait, this part for the present version */
#define MAX_WRONG 3u
#define MAX_DEATHS 8u
#define UNKNOWN_ENDED                                                                              \
    4u /* assumed number of requests interrupted with a replica, if it does not report it */

void patience_init(struct patience *p, uint32_t wait_ms, uint32_t total_ms, uint64_t deadline_ns,
                   uint64_t now)
{
    *p = (struct patience){.wait_ns = wait_ms * MS_NS,
                           .total_ns = (total_ms ? total_ms : TOTAL_MS) * MS_NS,
                           .deadline_ns = deadline_ns,
                           .piece_ns = now};
}

void patience_asked(struct patience *p, uint64_t now)
{
    if (p->waits_ns)
        p->waited_ns += now - p->waits_ns;
    p->waits_ns = 0;
}

void patience_piece(struct patience *p, uint64_t now)
{
    p->begun = true;
    p->has_waited = false;
    p->piece_ns = now;
    p->waits_ns = p->waited_ns = 0;
    p->deaths = 0;
    p->last = PATIENCE_NO_FAILURE;
}

void patience_failed(struct patience *p, enum patience_failure how, uint32_t n_ended)
{
    p->last = how;
    if (how == PATIENCE_FAILED_ITSELF)
        p->n_wrong++;
    if (how == PATIENCE_DIED)
        p->deaths += PATIENCE_DEATH / (n_ended ? n_ended : UNKNOWN_ENDED);
}

void patience_waits(struct patience *p, uint64_t now)
{
    if (!p->waits_ns)
        p->waits_ns = now;
    p->has_waited = true;
}

bool patience_late(const struct patience *p, uint64_t now)
{
    return p->deadline_ns && now >= p->deadline_ns;
}

static uint64_t waited(const struct patience *p, uint64_t now)
{
    return p->waited_ns + (p->waits_ns ? now - p->waits_ns : 0);
}

bool patience_any_version(const struct patience *p, uint64_t now)
{
    return p->has_waited && waited(p, now) >= p->wait_ns / ANY_VERSION;
}

enum patience_verdict patience_judge(const struct patience *p, enum replica_found found,
                                     uint64_t now)
{
    bool believed = p->last == PATIENCE_REFUSED_IT || p->last == PATIENCE_FAILED_ITSELF;
    if (patience_late(p, now))
        return PATIENCE_LATE;
    if (p->n_wrong > MAX_WRONG)
        return PATIENCE_WRONG;
    if (p->deaths >= MAX_DEATHS * PATIENCE_DEATH)
        return PATIENCE_DEADLY;
    if (now - p->piece_ns >= p->total_ns)
        return PATIENCE_FRUITLESS;
    if (found == REPLICA_FOUND)
        return PATIENCE_GO_ON;
    bool absent = found == REPLICA_NONE || found == REPLICA_UNHEARD;
    if (!p->begun && (absent || believed))
        return PATIENCE_REFUSED;
    if (p->has_waited && waited(p, now) >= p->wait_ns)
        return PATIENCE_ALONE;
    return PATIENCE_GO_ON;
}

const char *patience_text(enum patience_verdict v)
{
    static const char *const texts[] = {
        [PATIENCE_GO_ON] = "it goes on",
        [PATIENCE_LATE] = "its deadline has passed",
        [PATIENCE_REFUSED] = "nobody takes it",
        [PATIENCE_ALONE] = "no replica was available for too long",
        [PATIENCE_FRUITLESS] = "no replica made progress for too long",
        [PATIENCE_WRONG] = "too many replicas failed",
        [PATIENCE_DEADLY] = "too many replicas crashed while running it"};
    return texts[v];
}
