/* routes.c - every path of the server, in one table. */
#include "gateway/api.h"
#include "gateway/gw.h"
#include "gateway/openai.h"

#define GENERATE (ROUTE_JSON | ROUTE_WORK)

const struct route gw_routes[] = {
    {"POST", "/v1/chat/completions", GENERATE, openai_chat, "answer a conversation",
     openai_chat_fields, &openai_n_chat_fields, "OpenAI"},
    {"POST", "/v1/completions", GENERATE, openai_completions, "continue a text",
     openai_completion_fields, &openai_n_completion_fields, "OpenAI"},
    {"GET", "/v1/models", 0, api_models, "every model of this server", NULL, NULL, "OpenAI"},
    {"GET", "/v1/models/*", 0, api_model, "one model", NULL, NULL, "OpenAI"},
    {"GET", "/healthz", ROUTE_OPEN, api_healthz, "the process answers", NULL, NULL, "Server"},
    {"GET", "/readyz", ROUTE_OPEN, api_readyz, "models are loaded", NULL, NULL, "Server"},
    {"GET", "/metrics", ROUTE_OPEN, api_metrics, "figures for Prometheus", NULL, NULL, "Server"},
};
const size_t gw_n_routes = sizeof(gw_routes) / sizeof(gw_routes[0]);
