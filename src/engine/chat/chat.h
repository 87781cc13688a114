/* chat.h - the chat template of an engine's model. */
#ifndef SHOAL_ENGINE_CHAT_H
#define SHOAL_ENGINE_CHAT_H

#include <stddef.h>

#include "base/err.h"
#include "engine/chat/tool_format.h"

struct shoal_engine;

/* Parses the template.  An error is kept and reported when the template is first used. */
void chat_open(struct shoal_engine *en);
void chat_close(struct shoal_engine *en);
/* SHOAL_EFORMAT: a text of the context has a NUL; the JSON reader would lose what follows it. */
SHOAL_MUST_CHECK int chat_check_context(const char *json, size_t n, struct err *e);
/* How the model writes tool calls. */
enum tool_format chat_tool_format(const struct shoal_engine *en);

#endif
