/* fuzz_sim_scenario.c - scenario files of shoal sim; small ones are also run for a moment. */
#include <stdint.h>
#include <stdlib.h>

#include "cluster/sim/sim_run.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool stop_soon(void *ctx, double part, uint32_t n_nodes, uint64_t n_plans)
{
    (void)part, (void)n_nodes, (void)n_plans;
    return ++*(int *)ctx > 20;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_scenario s;
    struct err e = {0};
    int rc = sim_scenario_parse(&s, (const char *)data, size, "fuzz", &e);
    if (rc < 0 && e.msg[0] == '\0')
        abort(); /* an error has a message */
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc == 0 && sim_scenario_nodes(&s) <= 64 && s.n_models <= 16 && s.models[0].copies <= 16) {
        struct sim_result r;
        int calls = 0;
        struct sim_opts o = {.seed = 1, .progress = stop_soon, .progress_ctx = &calls};
        rc = sim_run(&r, &s, &o, &e);
        if (rc == SHOAL_EINTERNAL)
            abort(); /* a plan broke a rule */
        if (rc == 0)
            sim_result_fini(&r);
    }
    sim_scenario_fini(&s);
    return 0;
}
