/* crew.h - a few threads that run one program of phases together.
 *
 * A phase is a number of chunks that any member may take, in any order; each begins with its own
 * share, so that phases which divide the same memory alike keep it in the same caches.  When the
 * last chunk is done, its runner runs the phase's finish and opens the next phase.  So nobody waits
 * for a member that the OS has taken off its core, unless that member holds a chunk.  Where a phase
 * has a commit, not even then: the chunk is computed again by whoever waits, the first to be ready
 * commits it, and what the late one made is thrown away.  Otherwise waiting spins only shortly
 * before it sleeps, which gives the core to whoever holds the chunk.  Two members that find
 * themselves on one core while another one has no member part: one of them moves there.
 *
 * Thread:    one owner calls crew_run; it works as member 0.
 * Ownership: crew_create gives, crew_destroy joins the threads and takes back (NULL is fine). */
#ifndef SHOAL_BASE_CREW_H
#define SHOAL_BASE_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct crew;

/* Cores that are online, at most 64: members of a crew when nobody says how many. */
uint32_t crew_cores(void);

struct crew_phase {
    /* One chunk of phase p.  Chunks of a phase must not depend on each other. */
    void (*chunk)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member);
    /* NULL, or: chunk writes only memory of its member's own, and commit, which must be short,
     * brings it where it belongs.  Then chunk may run twice, and late, beside later phases: it must
     * depend on nothing that changes but memory it only reads, and on the phase, of which it gets a
     * copy. */
    void (*commit)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member);
    void (*finish)(void *ctx, const struct crew_phase *p, uint32_t member); /* may be NULL */
    /* NULL, or: brings some of what `chunk` will read near, the next part of it with every step;
     * false: that was all.  Called while the phase before is not over, by a member that waits for
     * it and will begin with this chunk, and beside later phases: what commit says goes for it. */
    bool (*ahead)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t step);
    uint32_t arg, n_items, n_groups; /* the caller's own */
    uint32_t n_chunks;               /* 0: only finish; at most CREW_MAX_CHUNKS */
};
#define CREW_MAX_CHUNKS 4096u
#define CREW_MAX_COMMITS 512u /* chunks of a phase with a commit */

SHOAL_MUST_CHECK int crew_create(struct crew **out, uint32_t n_members, struct err *e);
void crew_destroy(struct crew *c);
uint32_t crew_size(const struct crew *c);
/* Called by whichever member ended a program: what it did and every member did before is seen.
 * Gives the program that follows at once, for the same ctx, and its number of phases; 0: none. */
typedef uint32_t (*crew_more_fn)(void *ctx, const struct crew_phase **phases);
/* Runs all phases in order, then those that `more` (may be NULL) gives, until it gives none;
 * returns when all is finished.  Programs are read only while this call runs.  With `more`, the
 * next one does not wait for the owner's thread either when the OS has taken that off its core. */
void crew_run(struct crew *c, void *ctx, const struct crew_phase *phases, uint32_t n_phases,
              crew_more_fn more);

#endif
