/* cmd.h - the subcommands of the shoal program, and their shared functions.
 *
 * A command gets the arguments after its name and returns the exit code of the program.  Data goes
 * to stdout, everything else to stderr.
 *
 * Thread: the main thread. */
#ifndef SHOAL_CMD_CMD_H
#define SHOAL_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cli/exit_code.h"
#include "cmd/cli/opts.h"

int cmd_generate(int argc, const char *const *argv);
int cmd_chat(int argc, const char *const *argv);
int cmd_tokenize(int argc, const char *const *argv);
int cmd_detokenize(int argc, const char *const *argv);
int cmd_logits(int argc, const char *const *argv);
int cmd_serve(int argc, const char *const *argv);
int cmd_node(int argc, const char *const *argv);
int cmd_worker(int argc, const char *const *argv); /* only started by the server: in no list */
int cmd_plugin(int argc, const char *const *argv); /* the same */
int cmd_gateway(int argc, const char *const *argv);
int cmd_perplexity(int argc, const char *const *argv);
int cmd_bench(int argc, const char *const *argv);
int cmd_ask(int argc, const char *const *argv);
int cmd_classify(int argc, const char *const *argv);
int cmd_tag(int argc, const char *const *argv);
int cmd_embed(int argc, const char *const *argv);
int cmd_rerank(int argc, const char *const *argv);
int cmd_score(int argc, const char *const *argv);
int cmd_anomaly_fit(int argc, const char *const *argv);
int cmd_anomaly_run(int argc, const char *const *argv);
int cmd_summarize(int argc, const char *const *argv);
int cmd_calibrate(int argc, const char *const *argv);
int cmd_eval_classify(int argc, const char *const *argv);
int cmd_eval_tag(int argc, const char *const *argv);
int cmd_eval_embed(int argc, const char *const *argv);
int cmd_eval_rerank(int argc, const char *const *argv);
int cmd_eval_summarize(int argc, const char *const *argv);
int cmd_eval_score(int argc, const char *const *argv);
int cmd_eval_perplexity(int argc, const char *const *argv);
int cmd_eval_cascade(int argc, const char *const *argv);
int cmd_eval_ask(int argc, const char *const *argv);
int cmd_eval_pii(int argc, const char *const *argv);
int cmd_pii(int argc, const char *const *argv);
int cmd_doctor(int argc, const char *const *argv);
int cmd_health(int argc, const char *const *argv);
int cmd_mcp(int argc, const char *const *argv);
int cmd_ca_init(int argc, const char *const *argv);
int cmd_ca_issue(int argc, const char *const *argv);
int cmd_ca_list(int argc, const char *const *argv);
int cmd_ca_revoke(int argc, const char *const *argv);
int cmd_ca_rotate(int argc, const char *const *argv);
int cmd_ca_show(int argc, const char *const *argv);
int cmd_home_check(int argc, const char *const *argv);
int cmd_home_list(int argc, const char *const *argv);
int cmd_home_import(int argc, const char *const *argv);
int cmd_config_check(int argc, const char *const *argv);
int cmd_config_explain(int argc, const char *const *argv);
int cmd_config_schema(int argc, const char *const *argv);
int cmd_config_reference(int argc, const char *const *argv);
int cmd_route(int argc, const char *const *argv);
int cmd_flow_check(int argc, const char *const *argv);
int cmd_flow_run(int argc, const char *const *argv);
int cmd_flow_trace(int argc, const char *const *argv);
int cmd_flow_draw(int argc, const char *const *argv);
int cmd_router_fit(int argc, const char *const *argv);
int cmd_init(int argc, const char *const *argv);
int cmd_store_list(int argc, const char *const *argv);
int cmd_store_add(int argc, const char *const *argv);
int cmd_store_fetch(int argc, const char *const *argv);
int cmd_store_verify(int argc, const char *const *argv);
int cmd_store_remove(int argc, const char *const *argv);
int cmd_store_gc(int argc, const char *const *argv);
int cmd_index_add(int argc, const char *const *argv);
int cmd_index_query(int argc, const char *const *argv);
int cmd_index_ask(int argc, const char *const *argv);
int cmd_index_stats(int argc, const char *const *argv);
int cmd_index_remove(int argc, const char *const *argv);
int cmd_sim(int argc, const char *const *argv);
int cmd_model_show(int argc, const char *const *argv);
int cmd_model_convert(int argc, const char *const *argv);
int cmd_model_quantize(int argc, const char *const *argv);
int cmd_model_list(int argc, const char *const *argv);
int cmd_model_load(int argc, const char *const *argv);
int cmd_model_unload(int argc, const char *const *argv);
int cmd_cluster_status(int argc, const char *const *argv);
int cmd_cluster_nodes(int argc, const char *const *argv);
int cmd_cluster_models(int argc, const char *const *argv);
int cmd_cluster_top(int argc, const char *const *argv);
int cmd_cluster_init(int argc, const char *const *argv);
int cmd_cluster_join(int argc, const char *const *argv);
int cmd_cluster_deploy(int argc, const char *const *argv);
int cmd_cluster_remove(int argc, const char *const *argv);
int cmd_cluster_plan(int argc, const char *const *argv);
int cmd_cluster_drain(int argc, const char *const *argv);
int cmd_cluster_undrain(int argc, const char *const *argv);
int cmd_cluster_desired(int argc, const char *const *argv);
int cmd_cluster_events(int argc, const char *const *argv);
int cmd_rollout_start(int argc, const char *const *argv);
int cmd_rollout_status(int argc, const char *const *argv);
int cmd_rollout_pause(int argc, const char *const *argv);
int cmd_rollout_promote(int argc, const char *const *argv);
int cmd_rollout_undo(int argc, const char *const *argv);
int cmd_rollout_history(int argc, const char *const *argv);

/* Parses options and sets up logging.  false: exit with *exit_code. */
bool cmd_begin(struct opts *o, const struct opts_page *page, int argc, const char *const *argv,
               int *exit_code);
/* Prints "shoal <command>: <message>" to stderr; returns CMD_FAILED. */
int cmd_fail(const struct opts_page *page, const char *fmt, ...) SHOAL_PRINTF(2, 3);
/* Writes all of b to stdout.  CMD_OK, or CMD_FAILED after a message. */
int cmd_print(const struct opts_page *page, const struct buf *b);

/* Reads a command's input: the argument, the file of -f, or stdin if it is not a terminal or the
 * argument is "-".  Reports errors; returns CMD_OK or an exit code. */
int cmd_read_text(const struct opts *o, const char *argument, const char *file, struct buf *out);
/* Peak memory of this process so far. */
double cmd_peak_mib(void);
/* Parses numbers separated by commas, blanks or brackets and appends them to *ids (mem_free). */
SHOAL_MUST_CHECK int cmd_parse_ids(const char *text, size_t n_bytes, int32_t **ids, size_t *n_ids,
                                   struct err *e);

#endif
