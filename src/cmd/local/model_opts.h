/* model_opts.h - the options of every command that loads or runs a model.
 *
 * Thread:    the main thread.
 * Ownership: close the engine of model_opts_open with shoal_engine_close; model_opts_sampling_fini
 *            frees. */
#ifndef SHOAL_CMD_LOCAL_MODEL_OPTS_H
#define SHOAL_CMD_LOCAL_MODEL_OPTS_H

#include "cmd/cli/opts.h"
#include "host/model_name.h"
#include "shoal/shoal.h"

/* -m, --ctx, --threads, --kernels, --kv, --chunk, --no-cache; without a default for -m, and with
 * the included language model as the default */
extern const struct opts_group model_opts_group;
extern const struct opts_group model_opts_group_reply;
/* --temp and the like */
extern const struct opts_group model_opts_sampling_group;

/* Loads the model, with a progress bar when its weights are tiled for the first time.  base: the
 * command's defaults, or NULL.  CMD_OK, or an exit code after a message. */
int model_opts_open(const struct opts *o, const struct shoal_engine_opts *base, int interrupt_fd,
                    struct shoal_engine **engine);

/* -m, --int8, --threads, --kernels, --no-cache: for commands that run specialists */
extern const struct opts_group model_opts_specialist_group;
/* The same with an included model as the default of -m. */
extern const struct opts_group model_opts_classify_group, model_opts_tag_group,
    model_opts_embed_group, model_opts_summarize_group, model_opts_score_group,
    model_opts_hear_group, model_opts_speak_group;
/* Loads a specialist; name (always call model_name_fini) has its label set. */
int model_opts_specialist_open(const struct opts *o, int interrupt_fd, struct shoal_engine **engine,
                               struct model_name *name);
/* The same with another model than -m's. */
int model_opts_specialist_open_as(const struct opts *o, const char *model, int interrupt_fd,
                                  struct shoal_engine **engine, struct model_name *name);

struct sampling_opts {
    struct shoal_sampling sampling;
    struct shoal_bias *bias;
};
/* CMD_OK, or an exit code after a message. */
int model_opts_sampling_read(const struct opts *o, struct sampling_opts *out);
void model_opts_sampling_fini(struct sampling_opts *s);

#endif
