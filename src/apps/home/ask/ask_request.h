/* ask_request.h - a request of the home flow while it lives, for the files that take it from stage
 * to stage: ask_read, ask_decide, ask_speak; ask.c puts them together.  Private to them.
 *
 * Thread:    one thread at a time works on a request; ask.h says which.  `lock` guards what other
 *            threads may touch.
 * Ownership: reference-counted; everything that a request makes is in its arena. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_REQUEST_H
#define SHOAL_APPS_HOME_ASK_ASK_REQUEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "flow/ask_plan.h"
#include "apps/home/ask/ask_away.h"
#include "apps/home/ask/ask_event.h"
#include "apps/home/home_carry.h"
#include "apps/home/home_draft.h"
#include "apps/home/home_memory.h"
#include "apps/home/read/read_lines.h"
#include "apps/home/site/home_things.h"
#include "shoal/shoal.h"

#define ASK_MAX_READINGS 4u

struct ask {
    const struct home_table *table;
    struct shoal_engine *reader; /* NULL: requests provide access to it */
    struct shoal_engine *reply;  /* NULL: none, or requests provide it */
    struct home_memory *memory;
    struct home_things *things; /* NULL: no home */
    struct home_file *file;     /* without one, what texts may be about; held; NULL: nothing */
};

enum ask_stage { ASK_STAGE_READ, ASK_STAGE_CARRY, ASK_STAGE_REPLY };

struct ask_request {
    struct ask *ask;
    const struct home_table *table;     /* in the language of the text */
    bool speaks;                        /* false: actions only */
    struct shoal_engine *reply_engine;  /* NULL: it is reached through `away` */
    struct shoal_engine *reader_engine; /* the same */
    struct ask_away *away;              /* NULL: all models have engines here */
    _Atomic uint32_t refs;              /* the caller's and the flow's own */
    _Atomic uint32_t pending; /* unfinished parts of the stage, plus one while they are started */
    _Atomic bool cancel;
    enum ask_stage stage;
    int code; /* the first failure */
    char message[320];

    struct arena arena;
    const char *text, *conversation; /* in the arena; conversation "": none */
    const char *owner;               /* in the arena; "": unknown */
    const char *room;                /* where the speaker is; NULL: not known */
    bool dry;                        /* nothing is carried out or remembered */
    float heard;                     /* confidence of its recognizer; 0: typed */
    struct home_focus read_focus;    /* for the memory, if a plan was taken */
    struct read_lines *lines;
    struct read_lines_state read_state;
    const char *read_kept; /* words that the last plan had; NULL: none */
    struct {
        char text[512]; /* not in the arena, which another thread may use at that time */
        float p;
    } readings[ASK_MAX_READINGS]; /* best first */
    uint32_t n_readings;
    struct ask_answer *answer;     /* it was read as the answer to a question; NULL: it was not */
    bool is_read;                  /* a plan was taken */
    struct home_words words;       /* of the text */
    bool too_long;                 /* longer than anybody can follow */
    struct ask_plan_clause clause; /* how it was understood */
    struct home_draft draft;
    struct home_focus focus; /* the previous topic */
    struct home_file *home;  /* held; NULL: none */
    struct home_file *file;  /* the same in the language of the text; lives as long */
    struct home_carry *deeds;
    uint32_t n_deeds;
    struct home_carry_later *later; /* requests to the schedule */
    uint32_t n_later;
    bool confirmed;       /* confirmed by the user */
    bool simulated;       /* no sink carries out the plan */
    struct ask_plan plan; /* complete once carried out */
    struct home_draft_context *contexts;
    uint32_t n_contexts, at_context;
    bool wordless; /* the reply model was too late for the current context */
    struct buf reply;
    size_t reply_from; /* where the reply to the current context begins */
    struct tm now;
    time_t now_s;

    uint64_t start_ns, deadline_ns, step_ns, total_ns;
    struct ask_plan_step steps[ASK_MAX_STEPS];
    uint32_t n_steps, step_tokens;
    int32_t priority;
    uint64_t client;
    float weight;
    void (*event)(void *ctx, const struct ask_request *r, const struct ask_event *ev);
    void *event_ctx;

    pthread_mutex_t lock; /* guards tasks, code and message, done */
    pthread_cond_t finished;
    struct shoal_task *task; /* of the current stage; NULL: none */
    bool done;
    void (*advance)(struct ask_request *r); /* runs when the last part of a stage is done */
};

void ask_request_unref(struct ask_request *r);
void ask_request_emit(struct ask_request *r, const struct ask_event *ev);
/* Any thread; the first failure is reported. */
void ask_request_fail(struct ask_request *r, int code, const char *message);
/* Ends a step for --explain; model NULL: none. */
void ask_request_step(struct ask_request *r, const char *name, const char *model);
/* The last event. */
void ask_request_finish(struct ask_request *r);
/* Keeps a task of the current stage, so that it can be cancelled. */
void ask_request_keep_task(struct ask_request *r, struct shoal_task *t);
void ask_request_drop_task(struct ask_request *r);
/* One of r->pending parts is done; the last one advances the request. */
void ask_request_part_done(struct ask_request *r);

#endif
