/* api.h - the handlers that are no generation: what there is, how it is, tokens. */
#ifndef SHOAL_GATEWAY_API_H
#define SHOAL_GATEWAY_API_H

struct call;

void api_healthz(struct call *c);
void api_readyz(struct call *c);
void api_metrics(struct call *c);
void api_models(struct call *c);
void api_model(struct call *c);

#endif
