/* channel.h - the detector of one channel: learns what is usual, and measures how unusual each step
 * is.
 *
 * A step is one value on the sensor's own time grid. Six statistics track the channel. Their normal
 * behaviour is learned (tail.h), so they are comparable: each gives the rate of false alarms per
 * day that its current value corresponds to.
 *
 *  - The distance of a value from the usual level, and the jump from the value before. Both count
 *    only when they are more than twice as large as any recent one: real channels have spikes.
 *  - Moving means of 16 and 64 steps against the mean and the deviation of everything seen so far.
 *    This reference learns from all steps, also from unusual ones, so a channel that changes often
 *    needs a larger change to be unusual.
 *  - A moving mean of 256 steps against the usual level, which detects changes so slow that the
 *    running reference follows them. It counts only when it is more than twice as large as it was
 *    in normal times: real channels wander.
 *  - The spread of the changes.
 *
 * The usual level comes from a profile learned before (which stays fixed), or from the first steps
 * of the channel itself: after 32 of them, again at each half more until there are `learn`; then it
 * follows the channel slowly. With times of day, the daily pattern is subtracted if that reduces
 * the deviation.
 *
 * A target of false alarms per day means little for a channel that was seen for a minute, so until
 * CHANNEL_DAYS it may spend what these days allow on the time that it was seen (channel_target).
 *
 * Steps in doubt, those near or beyond the target, are in quarantine: nothing is learned from them
 * until their state was reported. A state that lasts is reported at the latest when it becomes the
 * usual one.
 *
 * A channel that switches between levels (duty.h) is folded: every level counts as the first one.
 * Values on their way between two levels are not judged. A profile that was learned before is of
 * the values as they are, and stays.
 *
 * Thread:    belongs to its caller.
 * Ownership: plain data in the caller's storage; no pointers inside.
 * Failure:   cannot fail. */
#ifndef SHOAL_THINGS_CHANNEL_H
#define SHOAL_THINGS_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "things/duty.h"
#include "things/tail.h"

#define CHANNEL_MAX_LEARN 1024u
#define CHANNEL_FALSE_ALARMS 0.02 /* per day, unless told otherwise */
#define CHANNEL_DAYS 5.0          /* a channel is new until it was seen this long */
#define CHANNEL_DAY_BINS 24u
#define CHANNEL_BLOCKS 12u /* blocks whose means show a trend */
#define CHANNEL_BLOCK 64u  /* steps of each */

enum channel_stat {
    CHANNEL_OUT,    /* distance of the value from the usual level */
    CHANNEL_JUMP,   /* change since the step before */
    CHANNEL_SHIFT,  /* mean of about 16 steps against everything so far */
    CHANNEL_SLOW,   /* ... of about 64 steps */
    CHANNEL_LONG,   /* mean of about 256 steps against the usual level */
    CHANNEL_SPREAD, /* spread of the changes over about 16 steps */
    CHANNEL_N_STATS
};

/* The usual behaviour of a channel. */
struct profile {
    double mean, spread;  /* usual level and deviation, by medians */
    double plain_mean;    /* of all steps, as a distance from the usual level in `spread` */
    double plain_spread;  /* ... and their deviation, outliers and all */
    double most_out;      /* largest distance from the usual level, in `spread` */
    double most_jump;     /* largest change between steps, in `step` */
    double most_long;     /* largest long mean, in `spread` */
    double step;          /* usual deviation of a change between steps */
    double low, high;     /* normal range */
    double interval_ms;   /* between steps */
    uint32_t longest_run; /* longest run of equal values */
    uint32_t n;           /* steps it was learned from; 0: not learned */
    struct tail tails[CHANNEL_N_STATS];
    bool daily; /* day is the usual level by the hour; otherwise mean is */
    float day[CHANNEL_DAY_BINS];
};

/* A moving mean is sum / weight. */
struct channel_mean {
    double sum, weight;
};

/* Moving values of the statistics. */
struct channel_motion {
    double last;
    struct channel_mean raw16, raw64;  /* means of all distances */
    struct channel_mean short16, slow; /* means of clipped distances: 16 and 256 steps */
    struct channel_mean spread;
    double all, all_squares, all_weight;   /* the running reference */
    double most_out, most_jump, most_long; /* recent maxima */
    double most_steady;                    /* as most_long, but slower to learn */
    double block_sum;
    uint32_t n_in_block, n_blocks;
    float blocks[CHANNEL_BLOCKS]; /* means, the newest last */
    float trend;                  /* trend of the blocks: -1 always falling, 1 always rising */
    bool started;
};

struct channel_result {
    double expected; /* false alarms per day that the most unusual statistic corresponds to */
    double target;   /* an alarm, if it expects no more than this */
    enum channel_stat stat; /* the most unusual statistic */
    bool checked;           /* the fast detector was in doubt: the precise one decided */
    double z;               /* distance from the usual level in usual deviations, with its sign */
    bool away;              /* the last steps are far from the usual level: the event is not over */
    bool stuck;             /* the value has not changed for unusually many steps */
    bool doubtful;          /* nothing was learned from this step */
    uint32_t overdue;       /* steps at a level that the channel should have left long ago; or 0 */
    bool ready;             /* false: too few steps for any verdict */
};

struct channel {
    struct profile usual;
    struct channel_motion motion;
    struct duty duty;
    bool fixed;            /* the profile was learned before and is kept */
    bool always;           /* the precise detector sees every step */
    bool reported;         /* the present doubtful state was beyond the target */
    double wanted;         /* target of false alarms per day */
    uint32_t learn;        /* steps to learn from; fewer: still learning */
    uint32_t n_kept, next; /* of `kept`, a ring */
    uint32_t n_good;       /* steps so far that can be learned from */
    uint32_t n_doubtful;   /* steps in quarantine so far */
    uint32_t n_far;        /* steps in a row that are far from the usual level, while it learns */
    uint32_t run;          /* equal values so far */
    uint32_t ended_run;    /* longest run since it was learned after which the value moved again */
    uint32_t n_unusual;    /* steps since the channel is in doubt, or away */
    uint32_t n_since;      /* steps since it was learned */
    double last;
    float kept[CHANNEL_MAX_LEARN];             /* the last steps, to learn from */
    uint32_t doubtful[CHANNEL_MAX_LEARN / 32]; /* which of them are in quarantine */
};

/* profile: NULL: the first `learn` steps (0: 512) define what is usual. */
void channel_init(struct channel *c, const struct profile *p, uint32_t learn, double interval_ms);
/* time_ms: for the time of day; negative: unknown. */
struct channel_result channel_step(struct channel *c, double value, int64_t time_ms);
/* Puts the last step in quarantine: others know that it is in doubt. */
void channel_doubt(struct channel *c);
/* One of the n_kept last steps, folded: 1 is the last one. */
double channel_kept(const struct channel *c, uint32_t back);
bool channel_is_doubtful(const struct channel *c, uint32_t back);
/* False alarms per day that are accepted after `steps` steps. */
double channel_target(double wanted, double steps, double interval_ms);
/* The usual level at a time. */
double channel_usual(const struct profile *p, int64_t time_ms);
/* A value of the profile at the level where the channel is now. */
double channel_unfolded(const struct channel *c, double value);

/* Learns from steps in order of time.  times: [n] in milliseconds, or NULL; scratch: [3 n]. */
void channel_learn(struct profile *p, const double *v, const int64_t *times, size_t n,
                   double interval_ms, double *scratch);

#endif
