/* split_way.h - whether one node computes a long prompt and another writes the answer: a pure
 * decision by the measured speeds of both, the link between them and the lengths.
 *
 * The strong node computes the prompt and writes the first token; the other one fetches the pages
 * of the prompt (page_links.h) and goes on.  It pays where the node that would be chosen reads
 * slowly, and the strong one writes slowly, as under many streams.
 *
 * Thread: plain data. */
#ifndef SHOAL_CLUSTER_AFFINITY_SPLIT_WAY_H
#define SHOAL_CLUSTER_AFFINITY_SPLIT_WAY_H

enum split_mode { SPLIT_AUTO, SPLIT_NEVER, SPLIT_ALWAYS }; /* as in the configuration */

enum split_way {
    SPLIT_AS_CHOSEN, /* the chosen node does all of it */
    SPLIT_STRONG,    /* the strong node does */
    SPLIT_BOTH,
};

/* A node now, with its load; 0: not known. */
struct split_node {
    double queue_ns, prefill_ns, token_ns; /* before it begins; of a token of prompt and answer */
    double held;                           /* of the prompt it has read this share, 0 to 1 */
};

struct split_case {
    struct split_node strong, chosen;
    double link;           /* bytes a second into the chosen node; 0: never measured */
    double token_bytes;    /* of the computed prompt; 0: it cannot be fetched */
    double prompt, answer; /* tokens */
};

enum split_way split_way(enum split_mode mode, const struct split_case *c);
/* Until the answer begins there. */
double split_prompt_ns(const struct split_node *n, double prompt);

#endif
