/* ask_away.h - how an ask reaches models that have no engine in this process.
 *
 * Thread:    infer and reply: any; cancel: the thread that the implementation belongs to. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_AWAY_H
#define SHOAL_APPS_HOME_ASK_ASK_AWAY_H

struct shoal_infer_opts;
struct shoal_task_opts;

/* The models of an ask. */
enum ask_model { ASK_MODEL_READER, ASK_MODEL_REPLY, ASK_MODELS };

/* Reaches models that have no engine in this process; implemented by the code that runs them
 * elsewhere. Each infer and each reply ends with one call of o->done, or of o->event with DONE, on
 * any thread, also inside the call. Everything that o points to must live until then. */
struct ask_away {
    const struct ask_away_ops *ops;
};

struct ask_away_ops {
    void (*infer)(struct ask_away *w, enum ask_model which, const struct shoal_infer_opts *o);
    /* Continues a conversation of one message, without sampling. */
    void (*reply)(struct ask_away *w, const char *message, const struct shoal_task_opts *o);
    void (*cancel)(struct ask_away *w); /* cancels everything; DONE is still delivered */
};

#endif
