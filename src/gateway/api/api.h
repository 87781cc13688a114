/* api.h - handlers for information, administration and tokens. */
#ifndef SHOAL_GATEWAY_API_API_H
#define SHOAL_GATEWAY_API_API_H

#include "gateway/call/fields.h"

struct call;
struct json_out;

void api_healthz(struct call *c);
void api_readyz(struct call *c);
void api_metrics(struct call *c);
void api_support(struct call *c);
void api_models(struct call *c);
void api_model(struct call *c);
void api_machine(struct call *c);
void api_traces(struct call *c);
void api_trace(struct call *c);
void api_cluster(struct call *c);
void api_cluster_change(struct call *c);
void openapi_get(struct call *c);

extern const struct field api_tokenize_fields[], api_detokenize_fields[], api_admin_fields[];
extern const size_t api_n_tokenize_fields, api_n_detokenize_fields, api_n_admin_fields;
extern const struct field api_cluster_fields[];
extern const size_t api_n_cluster_fields;
void api_tokenize(struct call *c);
void api_detokenize(struct call *c);
void api_admin_models(struct call *c);
void api_admin_change(struct call *c);
extern const struct field api_models_change_fields[];
extern const size_t api_n_models_change_fields;
void api_models_load(struct call *c);
void api_models_unload(struct call *c);
void api_models_remove(struct call *c);
extern const struct field api_demo_fields[];
extern const size_t api_n_demo_fields;
void api_demo(struct call *c);
void api_demo_change(struct call *c);
void api_home(struct call *c);
void api_home_change(struct call *c);
void api_scheduled(struct call *c);
void api_scheduled_cancel(struct call *c);
extern const struct field api_rollout_fields[];
extern const size_t api_n_rollout_fields;
void api_rollouts_change(struct call *c);
/* The member "rollouts" of an object. */
void api_rollouts_put(struct json_out *j, const struct call *c);

#endif
