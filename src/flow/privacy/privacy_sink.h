/* privacy_sink.h - a sink in front of another one that puts personal data back into an answer.
 *
 * Marks (pseudonyms.h) in texts, in arguments of tool calls and in summaries are replaced by their
 * values, also when a mark is split over several pieces. Positions of spans are mapped back to the
 * client's text.
 *
 * Thread:    the owner's.
 * Ownership: lives in the arena of its request. */
#ifndef SHOAL_FLOW_PRIVACY_SINK_H
#define SHOAL_FLOW_PRIVACY_SINK_H

#include "flow/flow.h"
#include "flow/privacy/pseudonyms.h"

/* A part of a text that was replaced: from and to in the client's text and in the model's. */
struct privacy_edit {
    size_t from, to, new_from, new_to;
};

/* An input of a specialist. */
struct privacy_input {
    const char *text; /* the client's */
    const struct privacy_edit *edits;
    uint32_t n_edits;
};

/* The sink to continue with; NULL: out of memory, and nothing happened. map NULL: nothing is
 * restored (masks). inputs: [n_inputs], of an inference; it and map must stay valid until
 * closed. */
struct sink *privacy_sink_open(struct request *r, struct sink *to, struct pseudonyms_map *map,
                               const struct privacy_input *inputs, uint32_t n_inputs);

#endif
