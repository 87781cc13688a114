/* grammar_parts.h - JSON values of given schemas with fixed texts around them, such as tool calls.
 * The text is a JSON object:
 *
 *   {"parts": [{"begin": "<tool_call>\n{\"name\": \"f\", \"arguments\": ",
 *               "schema": {...}, "end": "}\n</tool_call>"}, ...],
 *    "min": 1, "max": 4, "between": "\n", "before": "", "after": "", "trigger": "<tool_call>"}
 *
 * It matches `before`, then min to max parts with `between` between them, then `after`.  Each part
 * is one of the list.  Defaults: one part, no texts.  "begin_token" and "before_token" name a
 * control token of the model by its spelling, which precedes that text; where a model has
 * no such token, its spelling is matched as text.
 *
 * With `trigger` the answer may instead be any text without the trigger, or such a text followed by
 * the parts; `before` and every `begin` in question must begin with the trigger.
 *
 * Thread:    pure.
 * Failure:   of the tree. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_PARTS_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_PARTS_H

#include <stddef.h>
#include <stdint.h>

struct grammar_tree;

uint32_t grammar_parts_read(struct grammar_tree *t, const char *p, size_t n);

#endif
