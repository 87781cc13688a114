/* load_stats.h - what happened to each request of a run, and what that says.
 *
 * Latencies count from the time at which a request was due, whether or not it could be sent then: a
 * generator that waits for a slow server must not hide how long its clients would have waited.
 *
 *   E2E   due to the last byte of the answer
 *   TTFT  due to the first piece of text
 *   ITL   between two pieces of text of one answer, all gaps of all answers
 *   TPOT  per answer: (last piece - first piece) / (output tokens - 1)
 *   late  due to handed to a connection: what the generator itself added
 *
 * Output tokens are those that the server counted, or else the pieces.  Only answers that are
 * complete count in latencies; the others are errors.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage.
 * Failure:   a full log drops and counts. */
#ifndef SHOAL_LOAD_LOAD_STATS_H
#define SHOAL_LOAD_LOAD_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum load_outcome {
    LOAD_OK,
    LOAD_CONNECT,    /* no connection */
    LOAD_TIMEOUT,    /* no complete answer in time */
    LOAD_REFUSED,    /* 429 or 503: the server is full */
    LOAD_CLIENT,     /* another 4xx */
    LOAD_SERVER,     /* another 5xx, or a status that is no answer */
    LOAD_BROKEN,     /* the connection or the answer ended too early */
    LOAD_REPORTED,   /* an error within an answer of status 200 */
    LOAD_FORMAT,     /* not HTTP, or not JSON */
    LOAD_UNFINISHED, /* interrupted by us: not an error of the server */
    LOAD_OUTCOMES
};

struct load_record { /* times in ns after the start of the run; 0: it did not happen */
    uint64_t due, sent, first, last, end;
    uint32_t n_pieces, n_tokens;
    uint16_t status;
    uint8_t outcome, part;
};

#define LOAD_MAX_GAPS ((size_t)1 << 21)

struct load_log {
    struct load_record *records;
    size_t n, cap;
    double *gaps; /* [n_gaps] ms: all, or LOAD_MAX_GAPS of them at random */
    size_t n_gaps, cap_gaps;
    uint64_t seen_gaps, seed;
    char example[LOAD_OUTCOMES][200]; /* the first message of each error */
    uint16_t example_status[LOAD_OUTCOMES];
    double seconds; /* from the start to the last event */
    double cpu_s;   /* of this process meanwhile */
};

struct load_slo { /* ms; 0: no limit */
    double ttft, tpot, e2e;
};

struct load_times { /* ms */
    size_t n;
    double mean, p50, p90, p95, p99, max;
};

struct load_summary {
    uint64_t n, n_outcome[LOAD_OUTCOMES], n_failed, n_good, n_tokens;
    double requests_per_s, tokens_per_s, good_per_s; /* of complete answers */
    double good_share;                               /* of all that were not interrupted */
    struct load_times ttft, itl, tpot, e2e, late;
};

void load_log_init(struct load_log *l, uint64_t seed);
void load_log_fini(struct load_log *l);
/* The number of a new record; SIZE_MAX: out of memory. */
size_t load_log_add(struct load_log *l);
void load_log_gap(struct load_log *l, uint64_t ns);
void load_log_error(struct load_log *l, size_t i, enum load_outcome o, int status,
                    const char *message);

const char *load_outcome_name(enum load_outcome o);
/* "ttft:200,tpot:50,e2e:2000", in ms. */
SHOAL_MUST_CHECK int load_slo_parse(struct load_slo *s, const char *text, struct err *e);
double load_record_ttft(const struct load_record *r); /* ms; NAN: there is none */
double load_record_e2e(const struct load_record *r);
bool load_record_good(const struct load_record *r, const struct load_slo *s);
/* part: of the mix; -1: all.  Requests due before skip_ns are left out. ITL is of all parts. */
SHOAL_MUST_CHECK int load_summarize(struct load_summary *out, const struct load_log *l, int part,
                                    uint64_t skip_ns, const struct load_slo *s, struct err *e);

#endif
