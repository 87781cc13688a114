/* routes.c - every path of the server, in one table. */
#include "gateway/api/api.h"
#include "gateway/api/decision.h"
#include "gateway/assets.h"
#include "gateway/grpc/grpc.h"
#include "gateway/gw.h"
#include "gateway/grpc/health.h"
#include "gateway/api/ollama.h"
#include "gateway/api/openai.h"
#include "gateway/api/process.h"
#include "gateway/api/specialists.h"
#include "gateway/stream_ws.h"

#define WORK (ROUTE_JSON | ROUTE_WORK)

const struct route gw_routes[] = {
    {"POST", "/v1/chat/completions", WORK, openai_chat, "answer a conversation", openai_chat_fields,
     &openai_n_chat_fields, "OpenAI", openai_recall, NULL},
    {"POST", "/v1/completions", WORK, openai_completions, "continue a text",
     openai_completion_fields, &openai_n_completion_fields, "OpenAI", openai_recall, NULL},
    {"POST", "/v1/embeddings", WORK, specialist_embeddings, "embeddings of texts", embed_fields,
     &n_embed_fields, "OpenAI", NULL, NULL},
    {"GET", "/v1/models", 0, api_models, "all models of this server", NULL, NULL, "OpenAI", NULL,
     NULL},
    {"GET", "/v1/models/*", 0, api_model, "one model", NULL, NULL, "OpenAI", NULL, NULL},
    {"POST", "/v1/classify", WORK, specialist_classify, "classify texts", classify_fields,
     &n_classify_fields, "Specialists", NULL, NULL},
    {"POST", "/v1/entities", WORK, specialist_entities,
     "find names, slots and personal data in texts", entities_fields, &n_entities_fields,
     "Specialists", NULL, NULL},
    {"POST", "/v1/rerank", WORK, specialist_rerank, "sort documents by relevance to a query",
     rerank_fields, &n_rerank_fields, "Specialists", NULL, NULL},
    {"POST", "/v1/summarize", WORK, specialist_summarize, "summarize texts", summarize_fields,
     &n_summarize_fields, "Specialists", NULL, NULL},
    {"POST", "/v1/score", WORK, specialist_score, "score rows of numbers", score_fields,
     &n_score_fields, "Specialists", NULL, NULL},
    {"POST", "/v1/process", WORK, process_handle, "a command or question: actions and a reply",
     process_fields, &n_process_fields, "Flows", NULL, NULL},
    {"POST", "/v1/route", WORK, decision_handle,
     "which model a route would choose, without running it", decision_fields, &decision_n_fields,
     "Flows", NULL, NULL},
    {"GET", "/v1/cluster", 0, api_cluster, "nodes of the shoal, as this member sees them", NULL,
     NULL, "Server", NULL, NULL},
    {"GET", "/v1/stream", 0, stream_ws, "WebSocket: requests to the other paths, several at a time",
     NULL, NULL, "Server", NULL, NULL},
    {"POST", "/tokenize", WORK | ROUTE_KEEPS_JSON, api_tokenize, "text to token ids",
     api_tokenize_fields, &api_n_tokenize_fields, "Tokens", NULL, NULL},
    {"POST", "/detokenize", WORK | ROUTE_KEEPS_JSON, api_detokenize, "token ids to text",
     api_detokenize_fields, &api_n_detokenize_fields, "Tokens", NULL, NULL},
    {"POST", "/api/chat", WORK, ollama_chat, "answer a conversation", ollama_chat_fields,
     &ollama_n_chat_fields, "Ollama", NULL, NULL},
    {"POST", "/api/generate", WORK, ollama_generate, "answer a prompt", ollama_generate_fields,
     &ollama_n_generate_fields, "Ollama", NULL, NULL},
    {"POST", "/api/embed", WORK, specialist_ollama_embed, "embeddings of texts", embed_fields,
     &n_embed_fields, "Ollama", NULL, NULL},
    {"GET", "/api/tags", 0, ollama_tags, "all models", NULL, NULL, "Ollama", NULL, NULL},
    {"GET", "/api/ps", 0, ollama_ps, "loaded models", NULL, NULL, "Ollama", NULL, NULL},
    {"POST", "/api/show", ROUTE_JSON, ollama_show, "one model", NULL, NULL, "Ollama", NULL, NULL},
    {"GET", "/api/version", ROUTE_OPEN, ollama_version, "version of the server", NULL, NULL,
     "Ollama", NULL, NULL},
    {"POST", "/admin/cluster", ROUTE_ADMIN | ROUTE_JSON, api_cluster_change,
     "drain a node, or give it work again", api_cluster_fields, &api_n_cluster_fields, "Admin",
     NULL, NULL},
    {"GET", "/admin/models", ROUTE_ADMIN, api_admin_models, "models with state, memory and speed",
     NULL, NULL, "Admin", NULL, NULL},
    {"POST", "/admin/models", ROUTE_ADMIN | ROUTE_JSON, api_admin_change,
     "load, unload, add or remove a model", api_admin_fields, &api_n_admin_fields, "Admin", NULL,
     NULL},
    {"POST", "/admin/rollouts", ROUTE_ADMIN | ROUTE_JSON, api_rollouts_change,
     "pause, promote or undo a rollout of the shoal", api_rollout_fields, &api_n_rollout_fields,
     "Admin", NULL, NULL},
    {"POST", "/shoal.v1.Shoal/*", ROUTE_WORK, grpc_handle, "gRPC: proto/shoal/v1/shoal.proto", NULL,
     NULL, "gRPC", NULL, grpc_fail},
    {"POST", "/grpc.health.v1.Health/*", ROUTE_OPEN, health_handle, "gRPC: health", NULL, NULL,
     "gRPC", NULL, NULL},
    {"POST", "/grpc.reflection.v1.ServerReflection/*", ROUTE_OPEN | ROUTE_EARLY, grpc_reflection,
     "gRPC: reflection", NULL, NULL, "gRPC", NULL, NULL},
    {"POST", "/grpc.reflection.v1alpha.ServerReflection/*", ROUTE_OPEN | ROUTE_EARLY,
     grpc_reflection, "gRPC: reflection under its older name", NULL, NULL, "gRPC", NULL, NULL},
    {"GET", "/healthz", ROUTE_OPEN, api_healthz, "the process is alive", NULL, NULL, "Server", NULL,
     NULL},
    {"GET", "/readyz", ROUTE_OPEN, api_readyz, "the models are loaded", NULL, NULL, "Server", NULL,
     NULL},
    {"GET", "/metrics", ROUTE_OPEN, api_metrics, "metrics for Prometheus", NULL, NULL, "Server",
     NULL, NULL},
    {"GET", "/openapi.json", ROUTE_OPEN, api_openapi, "this description", NULL, NULL, "Server",
     NULL, NULL},
    {"GET", "/*", ROUTE_OPEN, assets_handle, "pages", NULL, NULL, "Server", NULL, NULL},
};
const size_t gw_n_routes = sizeof(gw_routes) / sizeof(gw_routes[0]);
_Static_assert(sizeof(gw_routes) / sizeof(gw_routes[0]) <= GW_MAX_ROUTES, "a histogram for each");
