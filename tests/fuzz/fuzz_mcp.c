/* fuzz_mcp.c - messages of the Model Context Protocol. Every input is a notification, an error
 * with a text, or a request with an id; a tool call has a path and a body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/mcp/mcp_read.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mcp_message m;
    cJSON *json = cJSON_ParseWithLength((const char *)data, size);
    mcp_read(&m, json, NULL);
    if (m.error ? !m.text[0] : m.method != MCP_NOTIFICATION && !m.id)
        abort();
    if (!json && m.error != MCP_READ_PARSE_ERROR)
        abort();
    if (!m.error && m.method == MCP_CALL && (!m.path || !cJSON_IsObject(m.body)))
        abort();
    if (!m.error && m.method == MCP_INITIALIZE && !m.version)
        abort();
    if (!m.error && m.texts &&
        cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(m.body, "input")) !=
            cJSON_GetArraySize(m.texts) + 1)
        abort();
    char *text = m.body ? cJSON_PrintUnformatted(m.body) : NULL;
    FUZZ_NOTE("%d %s %d %s %s", m.error, m.error ? m.text : "", (int)m.method,
              m.error || !m.path ? "" : m.path, text ? text : "");
    cJSON_free(text);
    cJSON_Delete(m.body);
    cJSON_Delete(json);
    return 0;
}
