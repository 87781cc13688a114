/* engine_opts.c - the command line of the engine benchmark. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

static const struct engine_words all_shapes = {{"s15m", "s110m", "smol135m", "qwen05b", "tiny1b"},
                                               5};
static const struct engine_words all_types = {{"q8_0", "q4_0", "q4_k_m", "f16", "iq4_xs", "iq3_m"},
                                              6};
static const struct engine_words all_tests = {{"decode", "prompt", "seqs", "busy", "load"},
                                              ENGINE_N_TESTS};

enum kind { FLAG, TEXT, REAL };

static const struct def {
    const char *name, *value;
    enum kind kind;
    size_t at;
    double min, max; /* range of a REAL option */
    const char *help;
} defs[] = {
#define AT(member) offsetof(struct engine_opts, member)
    {"--quick", "", FLAG, AT(quick), 0, 0, "only s15m at q8_0"},
    {"--shapes", "LIST", TEXT, AT(shape_list), 0, 0, "any of s15m,s110m,smol135m,qwen05b,tiny1b"},
    {"--types", "LIST", TEXT, AT(type_list), 0, 0,
     "any of q8_0,q4_0,q4_k_m,f16,iq4_xs,iq3_m (the first three)"},
    {"--tests", "LIST", TEXT, AT(test_list), 0, 0, "any of decode,prompt,seqs,busy,load (all)"},
    {"--rounds", "N", REAL, AT(rounds), 1, ENGINE_MAX_ROUNDS, "number of rounds (5)"},
    {"--threads", "LIST", TEXT, AT(thread_list), 0, 0,
     "thread counts to try (1 and all cores); the better one counts"},
    {"--one-thread", "", FLAG, AT(one_thread), 0, 0, "also report both with one thread"},
    {"--cpus", "LIST", TEXT, AT(cpu_list), 0, 0, "pin all programs to these cores: 2,3 or 4-7"},
    {"--limit", "SECONDS", REAL, AT(limit_s), 1, 1e6,
     "stop after this time and list what was not measured (no limit)"},
    {"--answer", "SECONDS", REAL, AT(answer_s), 0.1, 1e5,
     "kill a program that does not reply within this time (60)"},
    {"--best", "", FLAG, AT(best), 0, 0,
     "report the best round and the fastest step, not medians: for a busy\n"
     "machine (busy and load always report medians)"},
    {"--cpu", "", FLAG, AT(cpu), 0, 0, "one thread, rates by CPU time: for a busy machine"},
    {"--no-limits", "", FLAG, AT(no_limits), 0, 0, "do not measure the machine's limits"},
    {"--ours", "PATH", TEXT, AT(ours), 0, 0,
     "our program (build/shoal); make_shapes must be next to it"},
    {"--peer", "PATH", TEXT, AT(peer), 0, 0, "the peer (build/peer_llama, by bench/build-peer)"},
    {"--peer-libs", "DIR", TEXT, AT(peer_libs), 0, 0, "folder of llama.cpp's libraries"},
    {"--no-peer", "", FLAG, AT(no_peer), 0, 0, "measure ours only"},
    {"--peer-both", "", FLAG, AT(peer_both), 0, 0,
     "run the peer on both sides, to test the driver"},
    {"--models", "DIR", TEXT, AT(models), 0, 0, "folder of the model files (.cache/bench-models)"},
    {"--files", "", FLAG, AT(files), 0, 0, "make the model files, print their names, and exit"},
    {"--keep-f16", "", FLAG, AT(keep_f16), 0, 0,
     "keep the F16 files that the other types are made from"},
    {"--json", "FILE", TEXT, AT(json), 0, 0, "file for the rows (build/bench.json)"},
    {"--jsonl", "FILE", TEXT, AT(jsonl), 0, 0, "also write each row at once, one per line"},
    {"--help", "", FLAG, AT(help), 0, 0, "show this help"},
#undef AT
};

void engine_opts_help(FILE *out)
{
    fprintf(out, "usage: bench/run engine [OPTION ...]      (build/bench/bench_engine)\n"
                 "Compares our engine with llama.cpp on the same model files, in turn.\n\n");
    for (size_t i = 0; i < sizeof(defs) / sizeof(defs[0]); i++) {
        char left[40];
        const char *line = defs[i].help, *end;
        snprintf(left, sizeof(left), "%s %s", defs[i].name, defs[i].value);
        fprintf(out, "  %-17s  ", left);
        for (; (end = strchr(line, '\n')); line = end + 1)
            fprintf(out, "%.*s\n%21s", (int)(end - line), line, "");
        fprintf(out, "%s\n", line);
    }
    fprintf(
        out,
        "\nexamples:\n"
        "  bench/run engine --quick --tests decode\n"
        "  bench/run engine --shapes s15m,smol135m --types q8_0 --cpus 2,3 --one-thread\n"
        "  bench_engine --ours ./shoal --peer ./peer_llama --peer-libs ./peer --models /tmp/m\n"
        "      --json rows.json --jsonl rows.jsonl --limit 600   (a machine without the tree)\n");
}

bool engine_has_word(const struct engine_words *w, const char *word)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (strcmp(w->at[i], word) == 0)
            return true;
    return false;
}

bool engine_wants(const struct engine_opts *o, enum engine_test test)
{
    return engine_has_word(&o->tests, all_tests.at[test]);
}

/* Parses a list of words of the set, without duplicates. */
static int read_words(struct engine_words *out, const char *name, const char *list,
                      const struct engine_words *set, struct err *e)
{
    out->n = 0;
    for (const char *p = list;;) {
        const size_t n = strcspn(p, ",");
        uint32_t i = 0;
        while (i < set->n && (strlen(set->at[i]) != n || memcmp(set->at[i], p, n) != 0))
            i++;
        if (i == set->n)
            return err_set(e, SHOAL_EINVAL, "%s: unknown value %.*s", name, (int)n, p);
        if (!engine_has_word(out, set->at[i]))
            out->at[out->n++] = set->at[i];
        if (!p[n])
            return 0;
        p += n + 1;
    }
}

static bool read_number(const char **p, unsigned long min, unsigned long max, unsigned long *v)
{
    char *end;
    *v = strtoul(*p, &end, 10);
    if (**p < '0' || **p > '9' || *v < min || *v > max)
        return false;
    *p = end;
    return true;
}

static int read_threads(struct engine_opts *o, struct err *e)
{
    if (!o->thread_list) {
        o->threads[o->n_threads++] = 1;
        if (o->n_cpus > 1 && !o->cpu)
            o->threads[o->n_threads++] = o->n_cpus;
    }
    for (const char *p = o->thread_list; p;) {
        unsigned long v;
        if (o->n_threads == ENGINE_MAX_LIST || !read_number(&p, 1, 256, &v) || (*p && *p != ','))
            return err_set(e, SHOAL_EINVAL, "--threads is %s, expected up to %u numbers: 1,2",
                           o->thread_list, ENGINE_MAX_LIST);
        o->threads[o->n_threads++] = (uint32_t)v;
        p = *p ? p + 1 : NULL;
    }
    bool one = false;
    for (uint32_t i = 0; i < o->n_threads; i++) {
        one = one || o->threads[i] == 1;
        o->max_threads = o->threads[i] > o->max_threads ? o->threads[i] : o->max_threads;
    }
    if (o->cpu && (o->n_threads > 1 || !one))
        return err_set(e, SHOAL_EINVAL, "--cpu needs a single thread");
    if (o->one_thread && !one) {
        if (o->n_threads == ENGINE_MAX_LIST)
            return err_set(e, SHOAL_EINVAL, "--threads: too many numbers with --one-thread");
        o->threads[o->n_threads++] = 1;
    }
    return 0;
}

static int read_cpus(struct engine_opts *o, struct err *e)
{
    cpu_set_t usable;
    CPU_ZERO(&usable);
    if (sched_getaffinity(0, sizeof(usable), &usable) < 0)
        return err_set(e, SHOAL_EIO, "cannot find out which CPUs are usable");
    CPU_ZERO(&o->cpus);
    o->pinned = o->cpu_list != NULL;
    for (const char *p = o->cpu_list; p;) {
        unsigned long first, last;
        bool ok = read_number(&p, 0, CPU_SETSIZE - 1, &first);
        last = first;
        if (ok && *p == '-') {
            p++;
            ok = read_number(&p, first, CPU_SETSIZE - 1, &last);
        }
        if (!ok || (*p && *p != ','))
            return err_set(e, SHOAL_EINVAL, "--cpus is %s, expected numbers: 2,3 or 4-7",
                           o->cpu_list);
        for (; first <= last; first++) {
            if (!CPU_ISSET(first, &usable))
                return err_set(e, SHOAL_EINVAL, "--cpus: CPU %lu is not usable here", first);
            CPU_SET(first, &o->cpus);
        }
        p = *p ? p + 1 : NULL;
    }
    o->n_cpus = (uint32_t)CPU_COUNT(o->pinned ? &o->cpus : &usable);
    return 0;
}

static int read_option(struct engine_opts *o, int argc, char **argv, int *i, struct err *e)
{
    const char *arg = argv[*i], *equals = strchr(arg, '='), *value = equals ? equals + 1 : NULL;
    const size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
    const struct def *d = defs, *end = defs + sizeof(defs) / sizeof(defs[0]);
    while (d < end && (strlen(d->name) != n || memcmp(d->name, arg, n) != 0))
        d++;
    if (d == end)
        return err_set(e, SHOAL_EINVAL, "%s: unknown option", arg);
    char *at = (char *)o + d->at;
    if (d->kind == FLAG) {
        *(bool *)(void *)at = true;
        return value ? err_set(e, SHOAL_EINVAL, "%s does not take a value", d->name) : 0;
    }
    if (!value && *i + 1 < argc)
        value = argv[++*i];
    if (!value || !*value)
        return err_set(e, SHOAL_EINVAL, "%s needs a value: %s", d->name, d->value);
    if (d->kind == TEXT) {
        *(const char **)(void *)at = value;
        return 0;
    }
    char *rest;
    const double v = strtod(value, &rest);
    if (*rest || !(v >= d->min && v <= d->max))
        return err_set(e, SHOAL_EINVAL, "%s is %s, expected a number from %g to %g", d->name, value,
                       d->min, d->max);
    *(double *)(void *)at = v;
    return 0;
}

int engine_opts_read(struct engine_opts *o, int argc, char **argv, struct err *e)
{
    *o = (struct engine_opts){.rounds = 5,
                              .answer_s = 60,
                              .ours = "build/shoal",
                              .models = ".cache/bench-models",
                              .json = "build/bench.json"};
    int rc = 0;
    for (int i = 1; i < argc && rc == 0; i++)
        rc = read_option(o, argc, argv, &i, e);
    if (rc < 0 || o->help)
        return rc;
    o->rounds = floor(o->rounds);
    if (o->quick && !o->shape_list)
        o->shape_list = "s15m";
    if (o->quick && !o->type_list)
        o->type_list = "q8_0";
    o->shapes = all_shapes, o->types = all_types, o->tests = all_tests;
    o->types.n = 3; /* the others only if requested */
    if (o->shape_list)
        rc = read_words(&o->shapes, "--shapes", o->shape_list, &all_shapes, e);
    if (rc == 0 && o->type_list)
        rc = read_words(&o->types, "--types", o->type_list, &all_types, e);
    if (rc == 0 && o->test_list)
        rc = read_words(&o->tests, "--tests", o->test_list, &all_tests, e);
    if (rc == 0 && o->no_peer && (o->peer || o->peer_both))
        rc = err_set(e, SHOAL_EINVAL, "--no-peer cannot be combined with options for a peer");
    if (rc == 0)
        rc = read_cpus(o, e);
    return rc == 0 ? read_threads(o, e) : rc;
}
