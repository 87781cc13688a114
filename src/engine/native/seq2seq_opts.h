/* seq2seq_opts.h - generation settings of a sequence-to-sequence model, from its configuration
 * files.
 *
 * generation_config.json overrides the top level of config.json, and config.json's settings for the
 * task (task_specific_params.summarization) override both.
 *
 * Thread:    any.
 * Ownership: init copies; fini frees the prefix.
 * Failure:   SHOAL_EFORMAT names the document and the setting. */
#ifndef SHOAL_ENGINE_NATIVE_SEQ2SEQ_OPTS_H
#define SHOAL_ENGINE_NATIVE_SEQ2SEQ_OPTS_H

#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/native/beams.h"

struct seq2seq_opts {
    struct beams_opts write; /* start and ends only if a document sets them */
    char *prefix;            /* in front of every text: "summarize: " */
};

SHOAL_MUST_CHECK int seq2seq_opts_init(struct seq2seq_opts *o, const struct model_file *file,
                                       struct err *e);
/* The same from the text of the documents; p NULL: the document is missing. */
SHOAL_MUST_CHECK int seq2seq_opts_read(struct seq2seq_opts *o, struct str config,
                                       struct str generation, struct err *e);
void seq2seq_opts_fini(struct seq2seq_opts *o);

#endif
