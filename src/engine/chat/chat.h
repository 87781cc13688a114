/* chat.h - the chat template of an engine's model. */
#ifndef SHOAL_ENGINE_CHAT_H
#define SHOAL_ENGINE_CHAT_H

#include <stddef.h>

#include "base/err.h"
#include "base/value.h"
#include "engine/chat/tool_format.h"
#include "text/chat_template.h"

struct buf;
struct shoal_engine;
struct tokenizer;

/* Parses the template.  An error is kept and reported when the template is first used. */
void chat_open(struct shoal_engine *en);
void chat_close(struct shoal_engine *en);
/* 0, or why the model has no chat. */
SHOAL_MUST_CHECK int chat_usable(const struct shoal_engine *en, struct err *e);
/* Appends the prompt of a context in JSON, as the public functions take it.  text: see
 * chat_template.h.  SHOAL_EFORMAT also if a text of the context has a NUL. */
SHOAL_MUST_CHECK int chat_render_json(const struct shoal_engine *en, struct buf *out,
                                      const char *json, size_t n, chat_template_text *text,
                                      void *text_ctx, struct err *e);
/* The spelling of a special token; "" if there is none. */
struct value chat_token_value(const struct tokenizer *t, int32_t id);
/* How the model writes tool calls. */
enum tool_format chat_tool_format(const struct shoal_engine *en);

#endif
