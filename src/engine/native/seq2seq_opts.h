/* seq2seq_opts.h - how a sequence-to-sequence model wants to write: from the configurations that
 * came with it.
 *
 * config.json's own settings count least, then generation_config.json's, then those of config.json
 * for the task (task_specific_params.summarization).
 *
 * Thread:    any.  Ownership: init copies; fini frees the prefix.
 * Failure:   SHOAL_EFORMAT names the document and the setting. */
#ifndef SHOAL_ENGINE_NATIVE_SEQ2SEQ_OPTS_H
#define SHOAL_ENGINE_NATIVE_SEQ2SEQ_OPTS_H

#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/native/beams.h"

struct seq2seq_opts {
    struct beams_opts write; /* start and ends are set where a document says so */
    char *prefix;            /* in front of every text: "summarize: " */
};

SHOAL_MUST_CHECK int seq2seq_opts_init(struct seq2seq_opts *o, const struct model_file *g,
                                       struct err *e);
/* The same from the text of the documents; p NULL: there is none. */
SHOAL_MUST_CHECK int seq2seq_opts_read(struct seq2seq_opts *o, struct str config,
                                       struct str generation, struct err *e);
void seq2seq_opts_fini(struct seq2seq_opts *o);

#endif
