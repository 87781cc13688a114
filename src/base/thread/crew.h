/* crew.h - compute threads that all models of a process share.
 *
 * A program is a list of phases; a phase is a number of chunks. A lane runs the programs of one
 * model, one at a time: its owner (the thread that calls crew_run) is member 0, and threads of the
 * crew are members 1, 2, ... up to the size of the lane. Any member may take any chunk of the open
 * phase; each begins with its own share, so that phases which divide the same memory alike find it
 * in the same caches. The member that completes the last chunk runs the phase's finish and opens
 * the next phase.
 *
 * Nobody waits for a member that the OS has descheduled, unless that member holds a chunk. If the
 * phase has a commit, not even then: a waiting member computes the chunk again, the first result is
 * committed and the late one thrown away. Other waits spin briefly and then sleep, which leaves the
 * core to the member that holds the chunk.
 *
 * Several lanes may have a program in flight. An owner works on its own lane alone, so every
 * program makes progress whatever the others do. A crew thread looks for a more urgent lane after
 * every chunk: higher priority first, then the earlier deadline, then the lane that got the least
 * help recently. So a short program does not wait for a long one. Together owners and crew threads
 * never compute with more threads than the machine has cores (or the widest lane has members): each
 * program that starts makes the crew thread with the highest number step back.
 *
 * If two threads share a core while another core is free, one of them moves there.
 *
 * Thread:    crew_run by one thread at a time for each lane; create and destroy by any.
 * Ownership: crew_lane_destroy returns when no thread of the crew touches the lane's ctx any more.
 *            A crew outlives its lanes. */
#ifndef SHOAL_BASE_THREAD_CREW_H
#define SHOAL_BASE_THREAD_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct crew;
struct crew_lane;

/* Cores that this process may use, at most 64: the default size of a lane. */
uint32_t crew_cores(void);

struct crew_phase {
    /* One chunk of phase p.  Chunks of a phase must not depend on each other. */
    void (*chunk)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member);
    /* NULL, or: chunk writes only its member's own memory, and commit, which must be short, copies
     * the result to its place.  Then chunk may run twice, and late, during later phases: it must
     * depend only on memory that does not change and on the phase, of which it gets a copy. */
    void (*commit)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member);
    void (*finish)(void *ctx, const struct crew_phase *p, uint32_t member); /* may be NULL */
    /* NULL, or: prefetches some of the memory that `chunk` will read, one part per call; false:
     * nothing is left. Called by a member that waits for the previous phase and will start with
     * this chunk, and possibly during later phases: the same rules as for commit. */
    bool (*ahead)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t step);
    uint32_t arg, n_items, n_groups; /* the caller's own */
    uint32_t n_chunks;               /* 0: only finish; at most CREW_MAX_CHUNKS */
};
#define CREW_MAX_CHUNKS 4096u
#define CREW_MAX_COMMITS 512u /* chunks of a phase with a commit */
#define CREW_MAX_MEMBERS 256u
#define CREW_MAX_LANES 256u /* lanes of a crew with more than one member */

/* A crew without threads: lanes add them. */
SHOAL_MUST_CHECK int crew_create(struct crew **out, struct err *e);
/* Ends the threads; no lane may be left.  NULL is fine. */
void crew_destroy(struct crew *c);
/* Its number of threads. */
uint32_t crew_n_threads(struct crew *c);

/* A lane of n_members; the crew grows to n_members - 1 threads if it has fewer. c NULL: a private
 * crew. SHOAL_EINVAL: n_members is 0 or above CREW_MAX_MEMBERS. SHOAL_ELIMIT: CREW_MAX_LANES are in
 * use. */
SHOAL_MUST_CHECK int crew_lane_create(struct crew_lane **out, struct crew *c, uint32_t n_members,
                                      struct err *e);
/* No program may be running.  NULL is fine. */
void crew_lane_destroy(struct crew_lane *l);
uint32_t crew_lane_size(const struct crew_lane *l);
/* How urgent the next programs are: a larger priority first, then the earlier deadline (0: none, as
 * of clock_ns). Called by the owner before crew_run, or by the member inside `more`. */
void crew_lane_set_urgency(struct crew_lane *l, int32_t priority, uint64_t deadline_ns);

/* Called by whichever member completed a program; sees everything that all members wrote before.
 * Returns the number of phases of the next program, which runs at once with the same ctx; 0:
 * none. */
typedef uint32_t (*crew_more_fn)(void *ctx, const struct crew_phase **phases);
/* Runs all phases in order, then the programs that `more` (may be NULL) gives, until it gives none;
 * returns when all is finished.  Programs are read only while this call runs.  With `more`, the
 * next program does not wait for the owner when the OS has descheduled it. */
void crew_run(struct crew_lane *l, void *ctx, const struct crew_phase *phases, uint32_t n_phases,
              crew_more_fn more);

#endif
