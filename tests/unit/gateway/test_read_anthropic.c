/* test_read_anthropic.c - what messages of Anthropic become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/codec_read.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

#define MESSAGES "/v1/messages"
#define HI "'messages':[{'role':'user','content':'hi'}]"
#define DOOR_SEEN "tool(door '' null)"
/* the defaults of an API */
#define OPENAI "temp=1 top_p=1 "

static void test_anthropic(void **state)
{
    static const struct codec_read_row rows[] = {
        {MESSAGES, "{'max_tokens':9," HI "}", "max=9 " OPENAI "user:'hi' bytes=2"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'model':'m','system':'be','stream':true,'temperature':0.5,'top_p':"
         "0,'top_k':4,'stop_sequences':['x']}",
         "model='m' max=9 temp=0.5 top_k=4 top_p=1e-06 stop='x' progress system:'be' user:'hi' "
         "streams no_cache bytes=4"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'system':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}",
         "max=9 " OPENAI "system:'ab' user:'hi' bytes=4"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'output_config':{'format':{'type':'json_schema','schema':{'type':"
         "'null'}},'effort':'low'}}",
         "max=9 " OPENAI "schema:'{'type':'null'}' user:'hi' var(reasoning_effort 'low') bytes=17"},
        {MESSAGES, "{'max_tokens':9," HI ",'output_config':{'format':{'type':'odd'}}}",
         "400 output_config.format: {'type': 'json_schema', 's"},
        {MESSAGES, "{'max_tokens':9," HI ",'output_config':5}",
         "400 output_config: an object is expected"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'stop_sequences':['a','b','c','d','e','f','g','h','i','j','k','l',"
         "'m','n','o','p','q']}",
         "max=9 " OPENAI "stop='a' stop='b' stop='c' stop='d' stop='e' stop='f' stop='g' stop='h' "
         "stop='i' stop='j' stop='k' stop='l' stop='m' stop='n' stop='o' stop='p' stop='q' "
         "user:'hi' "
         "no_cache bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':''}", "max=9 " OPENAI "user:'hi' bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':5}",
         "400 system: a text or a list of blocks is expected"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':[{'type':'image'}]}",
         "400 system: a block of type 'image' is not supported"},
        {MESSAGES, "{'max_tokens':9," HI ",'system':[{'type':'text'}]}",
         "400 system: a block of type 'text' is not supported "},
        {MESSAGES, "{" HI "}", "400 max_tokens: the field is required"},
        {MESSAGES, "{'max_tokens':9,'messages':[]}",
         "400 messages: a list with at least one message is ex"},
        {MESSAGES, "{'max_tokens':9,'messages':5}",
         "400 messages: a list with at least one message is ex"},
        {MESSAGES, "{'max_tokens':9}", "400 messages: a list with at least one message is ex"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'system','content':'x'}]}",
         "400 messages.0.role: 'user' or 'assistant' is expect"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'content':'x'}]}",
         "400 messages.0.role: 'user' or 'assistant' is expect"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':5}]}",
         "400 messages.0.content: a text or a list of blocks i"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[]}]}",
         "400 messages: there is nothing to answer"},
        {MESSAGES, "{'max_tokens':9," HI ",'thinking':{'type':'disabled'}}",
         "max=9 " OPENAI "user:'hi' var(enable_thinking false) bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'thinking':{'type':'enabled'}}",
         "max=9 " OPENAI "user:'hi' var(enable_thinking true) bytes=2"},
        {MESSAGES, "{'max_tokens':9," HI ",'thinking':{'type':'deep'}}",
         "400 thinking: the type is enabled, adaptive or disab"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':"
         "[{'type':'thinking','thinking':'t'},{'type':'text','text':'a'},{'type':'text','text':'b'}"
         ",{'type':'tool_use','id':'c1','name':'lamp','input':{'x':1}},{'type':'redacted_thinking',"
         "'data':'t'}]},{'role':'user','content':[{'type':'text','text':'then'},{'type':'tool_"
         "result','tool_use_id':'c1','content':[{'type':'text','text':'ok'}]}]}]}",
         "max=9 " OPENAI "user:'hi' assistant:'ab' call(c1 lamp '{'x':1}') tool:'ok' name='lamp' "
         "for='c1' user:'then' bytes=17"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'c1','"
         "name':'lamp','input':{}}]},{'role':'user','content':[{'type':'tool_result','tool_use_id':"
         "'c1'}]},{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','content':"
         "null}]}]}",
         "max=9 " OPENAI "assistant:'' call(c1 lamp '{}') tool:'' name='lamp' for='c1' tool:'' "
         "name='lamp' for='c1' bytes=2"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'tool_use','id':'c1','name'"
         ":'lamp','input':{}}]}]}",
         "400 messages.0.content.0: a block of type 'tool_use'"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_result','tool_"
         "use_id':'c1'}]}]}",
         "400 messages.0.content.0: a block of type 'tool_resu"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'thinking'}]}]}",
         "400 messages.0.content.0: a block of type 'thinking'"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[{'text':'x'}]}]}",
         "400 messages.0.content.0: a block of type '?' is not"},
        {MESSAGES, "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'text'}]}]}",
         "400 messages.0.content.0: a block of type 'text' is "},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'image'}]}]}",
         "400 messages.0.content.0: a block of type 'image' is"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'tool_result'}]}]}",
         "400 messages.0.content.0: 'tool_use_id' is missing"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':'tool_result','tool_use_id'"
         ":'c1','content':5}]}]}",
         "400 messages.0.content.0: a text or a list of blocks"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','name':'"
         "lamp','input':{}}]}]}",
         "400 messages.0.content.0: a tool_use needs 'id', 'na"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'c1','"
         "input':{}}]}]}",
         "400 messages.0.content.0: a tool_use needs 'id', 'na"},
        {MESSAGES,
         "{'max_tokens':9,'messages':[{'role':'assistant','content':[{'type':'tool_use','id':'c1','"
         "name':'lamp','input':'x'}]}]}",
         "400 messages.0.content.0: a tool_use needs 'id', 'na"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp','description':'d','input_schema':{'type':'"
         "object'},'strict':true},{'type':'custom','name':'door'}]}",
         "max=9 " OPENAI "user:'hi' tool(lamp 'd' {'type':'object'} strict) " DOOR_SEEN
         " bytes=25"},
        {MESSAGES, "{'max_tokens':9," HI ",'tools':[{'type':'bash_1','name':'lamp'}]}",
         "400 tools.0: a tool of type 'bash_1' is not supporte"},
        {MESSAGES, "{'max_tokens':9," HI ",'tools':5}",
         "400 tools: a list of at most 512 is expected"},
        {MESSAGES, "{'max_tokens':9," HI ",'tools':[{}]}",
         "400 'tools.0' needs a name of 1 to 128 letters, digi"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'any','disable_"
         "parallel_tool_use':true}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) choice=required one_call bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'auto'}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'none'}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) choice=none bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI
         ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'tool','name':'lamp'}}",
         "max=9 " OPENAI "user:'hi' tool(lamp '' null) choice=one bytes=6"},
        {MESSAGES,
         "{'max_tokens':9," HI
         ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'tool','name':'door'}}",
         "400 'tool_choice' names the function 'door', which i"},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'tool'}}",
         "400 tool_choice: {'type': 'auto'}, 'any', 'none' or "},
        {MESSAGES,
         "{'max_tokens':9," HI ",'tools':[{'name':'lamp'}],'tool_choice':{'type':'required'}}",
         "400 tool_choice: {'type': 'auto'}, 'any', 'none' or "},
        {MESSAGES, "{'max_tokens':9," HI ",'tool_choice':{'type':'any'}}",
         "400 'tool_choice' needs 'tools'"},
        {"/v1/messages/count_tokens", "{" HI "}", "max=1 " OPENAI "prompt_only user:'hi' bytes=2"},
        {"/v1/messages/count_tokens", "{'max_tokens':9," HI "}", "400 unknown field 'max_tokens'"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anthropic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
