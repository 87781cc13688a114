/* reader.h - reads a text into plans: a sequence-to-sequence model whose answers are written in a
 * small language of their own, one token a word.
 *
 * Such a model says in its configuration how many of its first tokens are that language
 * ("shoal_plan_tokens"). It is a classifier whose labels are plans: the best few are found by a
 * beam search, and the score of a plan is its probability. docs and training/reader/PLAN.md say
 * what the words mean; this file knows two things about them only: a pointer (a letter and a
 * number) can be written only if it was read, and two pointers to words follow each other in order.
 *
 * The text of a job is a list of pieces with one space between them. A piece that begins with
 * READER_MARK is a word of the language; any other is a word of people, and is never read as one
 * of the language, whatever it spells. */
#ifndef SHOAL_ENGINE_NATIVE_READER_H
#define SHOAL_ENGINE_NATIVE_READER_H

#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/specialist.h"

#define READER_MARK '\x01'

struct crew;

bool reader_knows(const struct model_file *file);
/* As seq2seq_open. */
SHOAL_MUST_CHECK int reader_open(struct specialist *sp, const struct model_file *file,
                                 const struct tokenizer *t, const char *path, struct crew *crew,
                                 const struct shoal_engine_opts *o, struct err *e);

#endif
