/* test_read_openai.c - what chats, completions and responses of OpenAI become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/codec_read.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

#define CHAT "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define RESPONSES "/v1/responses"
#define HI "'messages':[{'role':'user','content':'hi'}]"
#define LAMP                                                                                       \
    "{'type':'function','function':{'name':'lamp','description':'on or off','parameters':{'type':" \
    "'object'},'strict':true}}"
#define DOOR "{'function':{'name':'door'}}"
#define LAMP_SEEN "tool(lamp 'on or off' {'type':'object'} strict)"
#define DOOR_SEEN "tool(door '' null)"
/* the defaults of an API */
#define OPENAI "temp=1 top_p=1 "
#define OLLAMA "temp=0.8 top_k=40 top_p=0.9 repeat=1.1 last=64 "

static void test_openai_chat(void **state)
{
    static const struct codec_read_row rows[] = {
        {CHAT, "{" HI "}", OPENAI "user:'hi' bytes=2"},
        {CHAT,
         "{" HI ",'model':'m','stream':true,'return_progress':true,'max_tokens':7,'temperature':0."
         "5,'top_p':0.25,'top_k':3,'min_p':0.125,'n':2,'seed':-5,'presence_penalty':-1.5,'"
         "frequency_penalty':1.5,'repeat_penalty':1.25,'ignore_eos':true,'priority':-3,'"
         "latency_budget_ms':60000,'explain':true}",
         "model='m' n=2 max=7 temp=0.5 top_k=3 top_p=0.25 min_p=0.125 repeat=1.25 presence=-1.5 "
         "frequency=1.5 seed=-5 ignore_end progress user:'hi' priority=-3 within=60000 explain "
         "streams bytes=2"},
        {CHAT, "{" HI ",'top_p':0,'seed':0,'max_tokens':0,'return_progress':true}",
         "temp=1 top_p=1e-06 seed=0 prompt_only user:'hi' bytes=2"},
        {CHAT, "{" HI ",'max_tokens':7,'max_completion_tokens':9}",
         "max=9 " OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'repetition_penalty':2}", OPENAI "repeat=2 user:'hi' bytes=2"},
        {CHAT, "{" HI ",'stop':'x'}", OPENAI "stop='x' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'stop':['x','','y']}", OPENAI "stop='x' stop='y' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'stop':5}", "400 stop invalid_type"},
        {CHAT, "{" HI ",'stop':['x',5]}", "400 stop invalid_type"},
        {CHAT, "{" HI ",'logit_bias':{'5':-100,'0':100,'7':1.5}}",
         OPENAI "bias(5 -inf) bias(0 100) bias(7 1.5) user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logit_bias':{'5':101}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'5':-100.5}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'-1':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'5x':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'2147483647':1}}",
         OPENAI "bias(2147483647 1) user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logit_bias':{'2147483648':1}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':{'5':true}}", "400 logit_bias invalid_value"},
        {CHAT, "{" HI ",'logit_bias':[5]}", "400 logit_bias invalid_type"},
        {CHAT, "{" HI ",'logprobs':true,'top_logprobs':4}",
         OPENAI "n_logprobs=4 logprobs user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logprobs':true}", OPENAI "logprobs user:'hi' bytes=2"},
        {CHAT, "{" HI ",'logprobs':false,'top_logprobs':0}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'top_logprobs':1}", "400 top_logprobs invalid_value"},
        {CHAT, "{" HI ",'logprobs':1}", "400 logprobs invalid_type"},
        {CHAT,
         "{" HI
         ",'stream':true,'stream_options':{'include_usage':true,'include_obfuscation':true}}",
         OPENAI "user:'hi' streams bytes=2"},
        {CHAT, "{" HI ",'stream':true,'stream_options':{'other':1}}",
         "400 stream_options.other unknown_parameter"},
        {CHAT, "{" HI ",'stream':true,'stream_options':5}", "400 stream_options invalid_type"},
        {CHAT, "{" HI ",'stream_options':{'other':1}}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'chat_template_kwargs':{'a':[1,'x',null],'b':{'c':true}}}",
         OPENAI "user:'hi' var(a [1,'x',null]) var(b {'c':true}) bytes=2"},
        {CHAT, "{" HI ",'chat_template_kwargs':[]}", "400 chat_template_kwargs invalid_type"},
        {CHAT, "{" HI ",'reasoning_effort':'high','verbosity':'low'}",
         OPENAI "user:'hi' var(verbosity 'low') var(reasoning_effort 'high') bytes=2"},
        {CHAT, "{" HI ",'reasoning_effort':'none','verbosity':''}",
         OPENAI "user:'hi' var(enable_thinking false) var(reasoning_effort 'none') bytes=2"},
        {CHAT, "{" HI ",'reasoning_effort':''}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}]}",
         OPENAI "user:'hi' assistant:'a' var(continue_final_message true) bytes=3"},
        {CHAT, "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':''}]}",
         OPENAI "user:'hi' assistant:'' bytes=2"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}],'"
         "continue_final_message':false}",
         OPENAI "user:'hi' assistant:'a' bytes=3"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}],'add_"
         "generation_prompt':true}",
         OPENAI "user:'hi' assistant:'a' var(add_generation_prompt true) bytes=3"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','content':'a'}],'add_"
         "generation_prompt':false}",
         OPENAI "user:'hi' assistant:'a' var(continue_final_message true) "
                "var(add_generation_prompt false) bytes=3"},
        {CHAT, "{" HI ",'continue_final_message':true}",
         OPENAI "user:'hi' var(continue_final_message true) bytes=2"},
        {CHAT, "{" HI ",'continue_final_message':true,'add_generation_prompt':true}",
         "400 continue_final_message invalid_value"},
        {CHAT, "{" HI ",'continue_final_message':true,'add_generation_prompt':false}",
         OPENAI
         "user:'hi' var(continue_final_message true) var(add_generation_prompt false) bytes=2"},
        {CHAT, "{}", "400 messages missing_required_parameter"},
        {CHAT, "{'messages':[]}", "400 messages invalid_type"},
        {CHAT, "{'messages':5}", "400 messages invalid_type"},
        {CHAT, "{'messages':[5]}", "400 messages[0] invalid_type"},
        {CHAT, "{'messages':[{'content':'x'}]}", "400 messages[0].role invalid_value"},
        {CHAT, "{'messages':[{'role':'other','content':'x'}]}",
         "400 messages[0].role invalid_value"},
        {CHAT, "{'messages':[{'role':'user','content':'x'},{'role':'user','content':5}]}",
         "400 messages[1].content invalid_type"},
        {CHAT, "{'messages':[{'role':'user','content':'x','other':1}]}",
         "400 messages[0].other unknown_parameter"},
        {CHAT,
         "{'messages':[{'role':'developer','content':null},{'role':'system'},{'role':'user','"
         "content':[{'type':'text','text':'a'},'b',{'type':'input_text','text':'c'},{'type':'"
         "refusal','refusal':'d'}],'name':'N'}]}",
         OPENAI "system:'' system:'' user:'a|b|c|d' name='N' bytes=7"},
        {CHAT, "{'messages':[{'role':'user','content':[]}]}", OPENAI "user:''"},
        {CHAT, "{'messages':[{'role':'user','content':[{'type':'image_url','image_url':'x'}]}]}",
         "400 messages[0].content invalid_value"},
        {CHAT, "{'messages':[{'role':'user','content':[{'text':'a'}]}]}",
         "400 messages[0].content invalid_value"},
        {CHAT, "{'messages':[{'role':'user','content':'x','images':['a']}]}",
         "400 messages[0].images unsupported_parameter"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

static void test_tools(void **state)
{
    static const struct codec_read_row rows[] = {
        {CHAT, "{" HI ",'tools':[" LAMP "," DOOR "]}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR
         "],'tool_choice':'required','parallel_tool_calls':false}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=required one_call bytes=33"},
        {CHAT, "{" HI ",'tools':[" LAMP "," DOOR "],'tool_choice':'none'}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=none bytes=33"},
        {CHAT, "{" HI ",'tools':[" LAMP "," DOOR "],'tool_choice':'auto'}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR
         "],'tool_choice':{'type':'function','function':{'name':'door'}}}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=one tool=1 bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR "],'tool_choice':{'type':'function','name':'lamp'}}",
         OPENAI "user:'hi' " LAMP_SEEN " " DOOR_SEEN " choice=one bytes=33"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "," DOOR
         "],'tool_choice':{'type':'function','function':{'name':'gate'}}}",
         "400 tool_choice invalid_value"},
        {CHAT,
         "{" HI ",'tools':[" LAMP "],'tool_choice':{'type':'other','function':{'name':'lamp'}}}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "],'tool_choice':{'function':{'name':'lamp'}}}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "],'tool_choice':{'type':'function'}}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "],'tool_choice':'maybe'}",
         "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tool_choice':'required'}", "400 tool_choice invalid_value"},
        {CHAT, "{" HI ",'tool_choice':'auto'}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'tool_choice':'none'}", OPENAI "user:'hi' choice=none bytes=2"},
        {CHAT, "{" HI ",'tools':5}", "400 tools invalid_type"},
        {CHAT, "{" HI ",'tools':[5]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'type':'other','function':{'name':'a'}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'type':5,'function':{'name':'a'}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'type':'function','name':'a'}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[" LAMP "," LAMP "]}", "400 tools[1] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':''}}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{}}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'a b'}}]}", "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'aZ0_-.:/'}}]}",
         OPENAI "user:'hi' tool(aZ0_-.:/ '' null) bytes=6"},
        {CHAT,
         "{" HI ",'tools':[{'function':{'name':'"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'}}]}",
         OPENAI "user:'hi' "
                "tool("
                "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn '' null) bytes=6"},
        {CHAT,
         "{" HI ",'tools':[{'function':{'name':'"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'a','parameters':5}}]}",
         "400 tools[0] invalid_value"},
        {CHAT, "{" HI ",'tools':[{'function':{'name':'a','parameters':null,'description':5}}]}",
         OPENAI "user:'hi' tool(a '' null) bytes=6"},
        {CHAT,
         "{" HI ",'tools':[{'function':{'name':'a','parameters':{'x':[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
         "]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}}]}",
         "400 tools[0] invalid_value"},
        {CHAT,
         "{" HI ",'functions':[{'name':'lamp'},{'name':'door'}],'function_call':{'name':'door'}}",
         OPENAI "user:'hi' tool(lamp '' null) " DOOR_SEEN " choice=one tool=1 one_call bytes=10"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':'none'}",
         OPENAI "user:'hi' tool(lamp '' null) choice=none one_call bytes=6"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':'auto'}",
         OPENAI "user:'hi' tool(lamp '' null) one_call bytes=6"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':''}",
         OPENAI "user:'hi' tool(lamp '' null) one_call bytes=6"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':'required'}",
         "400 function_call invalid_value"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'function_call':{'name':'gate'}}",
         "400 function_call invalid_value"},
        {CHAT, "{" HI ",'functions':[{'name':'lamp'}],'tools':[" LAMP "]}",
         "400 functions invalid_value"},
        {CHAT, "{" HI ",'functions':[],'tools':[" LAMP "]}",
         OPENAI "user:'hi' " LAMP_SEEN " bytes=29"},
        {CHAT, "{" HI ",'functions':5,'function_call':'auto'}", "400 functions invalid_type"},
        {CHAT, "{" HI ",'function_call':{'name':'lamp'}}", "400 function_call invalid_value"},
        {CHAT,
         "{'messages':[{'role':'user','content':'hi'},{'role':'assistant','tool_calls':[{'id':'c1',"
         "'type':'function','function':{'name':'lamp','arguments':'{}'}},{'id':'c2','function':{'"
         "name':'door','arguments':{'a':1}}}]},{'role':'tool','tool_call_id':'c2','content':'ok'},{"
         "'role':'tool','tool_call_id':'c9','content':'?'}]}",
         OPENAI "user:'hi' assistant:'' call(c1 lamp '{}') call(c2 door '{'a':1}') tool:'ok' "
                "name='door' for='c2' tool:'?' for='c9' bytes=14"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'lamp'}},{'id':'','"
         "function':{'name':'door','arguments':''}}]},{'role':'tool','content':'1'},{'role':'tool',"
         "'content':'2'},{'role':'tool','content':'3'}]}",
         OPENAI
         "assistant:'' call(messages[0].tool_calls[0] lamp '{}') call(messages[0].tool_calls[1] "
         "door '{}') tool:'1' name='lamp' for='messages[0].tool_calls[0]' tool:'2' name='door' "
         "for='messages[0].tool_calls[1]' tool:'3' bytes=7"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'function':{'name':'lamp','arguments':"
         "null}},{'id':null,'function':{'name':'door'}}]},{'role':'tool','name':'door','content':'"
         "1'},{'role':'user','content':'u'},{'role':'tool','content':'late'}]}",
         OPENAI "assistant:'' call(messages[0].tool_calls[0] lamp '{}') "
                "call(messages[0].tool_calls[1] door '{}') tool:'1' name='door' "
                "for='messages[0].tool_calls[1]' user:'u' tool:'late' bytes=10"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'c1','function':{'name':'lamp'}}]},{"
         "'role':'user','content':'u'},{'role':'function','tool_call_id':'c1','content':'late'}]}",
         OPENAI
         "assistant:'' call(c1 lamp '{}') user:'u' tool:'late' name='lamp' for='c1' bytes=7"},
        {CHAT, "{'messages':[{'role':'user','tool_calls':[]},{'role':'user','tool_calls':null}]}",
         OPENAI "user:'' user:''"},
        {CHAT, "{'messages':[{'role':'user','tool_calls':[{'function':{'name':'lamp'}}]}]}",
         "400 messages[0].tool_calls invalid_value"},
        {CHAT, "{'messages':[{'role':'assistant','tool_calls':5}]}",
         "400 messages[0].tool_calls invalid_type"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':5,'function':{'name':'lamp'}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT, "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{'name':'lamp','"
         "arguments':'[1]'}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{'name':'lamp','"
         "arguments':'{'}}]}]}",
         "400 messages[0].tool_calls[0] invalid_value"},
        {CHAT,
         "{'messages':[{'role':'assistant','tool_calls':[{'id':'a','function':{'name':'lamp','"
         "arguments':5}}]}]}",
         "400 messages[0].tool_calls[0] invalid_type"},
        {CHAT,
         "{'messages':[{'role':'assistant','function_call':{'name':'lamp','arguments':'{}'}}]}",
         OPENAI "assistant:'' call(messages[0].function_call lamp '{}') bytes=2"},
        {CHAT,
         "{'messages':[{'role':'assistant','function_call':{'name':'lamp'},'tool_calls':[{'id':'c1'"
         ",'function':{'name':'door'}}]}]}",
         OPENAI "assistant:'' call(c1 door '{}') bytes=2"},
        {CHAT, "{'messages':[{'role':'user','function_call':{'name':'lamp'}}]}",
         "400 messages[0].function_call invalid_value"},
        {CHAT, "{'messages':[{'role':'assistant','function_call':{}}]}",
         "400 messages[0].function_call invalid_value"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

static void test_constraints(void **state)
{
    static const struct codec_read_row rows[] = {
        {CHAT, "{" HI ",'response_format':{'type':'text'}}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'response_format':{'type':'json_object'}}",
         OPENAI "json:'' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'response_format':{'type':'json_object','schema':{'type':'array'}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT,
         "{" HI ",'response_format':{'type':'json_schema','json_schema':{'name':'a','schema':{'"
         "type':'array'}}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT, "{" HI ",'response_format':{'type':'json_schema','schema':true}}",
         OPENAI "schema:'true' user:'hi' bytes=6"},
        {CHAT, "{" HI ",'response_format':{'type':'json_schema','json_schema':{'name':'a'}}}",
         "400 response_format.json_schema missing_required_parameter"},
        {CHAT, "{" HI ",'response_format':{'type':'json_schema','json_schema':{'schema':5}}}",
         "400 response_format.json_schema.schema invalid_type"},
        {CHAT, "{" HI ",'response_format':{'type':'other'}}", "400 response_format invalid_value"},
        {CHAT, "{" HI ",'response_format':{}}", "400 response_format invalid_value"},
        {CHAT, "{" HI ",'grammar':'root ::= x'}", OPENAI "gbnf:'root ::= x' user:'hi' bytes=12"},
        {CHAT, "{" HI ",'grammar':''}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'grammar':5}", "400 grammar invalid_type"},
        {CHAT, "{" HI ",'json_schema':{'type':'array'}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT, "{" HI ",'json_schema':'{}'}", OPENAI "schema:'{}' user:'hi' bytes=4"},
        {CHAT, "{" HI ",'json_schema':''}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'json_schema':[1]}", "400 json_schema invalid_type"},
        {CHAT, "{" HI ",'guided_json':false}", OPENAI "schema:'false' user:'hi' bytes=7"},
        {CHAT, "{" HI ",'guided_regex':'a+'}", OPENAI "regex:'a+' user:'hi' bytes=4"},
        {CHAT, "{" HI ",'guided_choice':['a','b']}",
         OPENAI "choice:'['a','b']' user:'hi' bytes=11"},
        {CHAT, "{" HI ",'guided_choice':[]}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'guided_choice':['a','']}", "400 guided_choice invalid_type"},
        {CHAT, "{" HI ",'guided_choice':['a',1]}", "400 guided_choice invalid_type"},
        {CHAT, "{" HI ",'guided_choice':'a'}", "400 guided_choice invalid_type"},
        {CHAT, "{" HI ",'guided_grammar':'root ::= y'}",
         OPENAI "gbnf:'root ::= y' user:'hi' bytes=12"},
        {CHAT, "{" HI ",'structured_outputs':{'json':{'type':'array'}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {CHAT, "{" HI ",'structured_outputs':{'regex':'b+'}}",
         OPENAI "regex:'b+' user:'hi' bytes=4"},
        {CHAT, "{" HI ",'structured_outputs':{'choice':['c']}}",
         OPENAI "choice:'['c']' user:'hi' bytes=7"},
        {CHAT, "{" HI ",'structured_outputs':{'grammar':'root ::= z'}}",
         OPENAI "gbnf:'root ::= z' user:'hi' bytes=12"},
        {CHAT, "{" HI ",'structured_outputs':{'json_object':true}}",
         OPENAI "json:'' user:'hi' bytes=2"},
        {CHAT, "{" HI ",'structured_outputs':{'json_object':false}}", OPENAI "user:'hi' bytes=2"},
        {CHAT, "{" HI ",'structured_outputs':[]}", "400 structured_outputs invalid_type"},
        {CHAT, "{" HI ",'structured_outputs':{'regex':'b+','choice':['c']}}",
         "400 structured_outputs.choice invalid_value"},
        {CHAT, "{" HI ",'guided_regex':'a+','response_format':{'type':'json_object'}}",
         "400 guided_regex invalid_value"},
        {CHAT, "{" HI ",'guided_grammar':'root ::= y','grammar':'root ::= x'}",
         "400 guided_grammar invalid_value"},
        {"/api/chat", "{" HI ",'format':'json'}", OLLAMA "json:'' user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':''}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':{}}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':null}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'format':'yaml'}", "400 'format' must be 'json' or a schema"},
        {"/api/chat", "{" HI ",'format':5}", "400 'format' must be a JSON Schema"},
        {"/api/chat", "{" HI ",'format':{'type':'array'}}",
         OLLAMA "schema:'{'type':'array'}' user:'hi' streams bytes=18"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

static void test_openai_completions(void **state)
{
    static const struct codec_read_row rows[] = {
        {COMPLETIONS, "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n_predict':-1}", OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':['hi']}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':['hi','ho'],'n':3}",
         "prompts=2 n=3 max=16 " OPENAI "parse 'hi' 'ho' bytes=4"},
        {COMPLETIONS, "{'prompt':[5]}", "max=16 " OPENAI "parse [5] bytes=4"},
        {COMPLETIONS, "{'prompt':[5,0,2147483647]}",
         "max=16 " OPENAI "parse [5,0,2147483647] bytes=12"},
        {COMPLETIONS, "{'prompt':[5,2147483648]}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[5,-1]}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[5,1.5]}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[5,'a']}", "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':[[5,6],[7]]}",
         "prompts=2 max=16 " OPENAI "parse [5,6] [7] bytes=12"},
        {COMPLETIONS, "{'prompt':[[5,6]]}", "max=16 " OPENAI "parse [5,6] bytes=8"},
        {COMPLETIONS, "{'prompt':['a',[7]]}", "prompts=2 max=16 " OPENAI "parse 'a' [7] bytes=5"},
        {COMPLETIONS, "{'prompt':['a',[]]}", "400 prompt[1] invalid_type"},
        {COMPLETIONS, "{'prompt':['a',5]}", "400 prompt[1] invalid_type"},
        {COMPLETIONS, "{'prompt':['a',[7,-1]]}", "400 prompt[1] invalid_value"},
        {COMPLETIONS, "{'prompt':[]}", "400 prompt invalid_type"},
        {COMPLETIONS, "{'prompt':5}", "400 prompt invalid_type"},
        {COMPLETIONS, "{}", "400 prompt missing_required_parameter"},
        {COMPLETIONS, "{'prompt':{'prompt_string':'x'}}", "max=16 " OPENAI "parse 'x' bytes=1"},
        {COMPLETIONS, "{'prompt':{'prompt_string':'x','other':1}}", "400 prompt invalid_type"},
        {COMPLETIONS,
         "{'prompt':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a']}",
         "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':['a','a','a','a','a','a','a','a','a'],'n':15}",
         "400 prompt invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','suffix':'ho'}",
         "max=16 " OPENAI "parse 'hi' before 'ho' no_cache bytes=4"},
        {COMPLETIONS, "{'prompt':'hi','suffix':''}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':['hi','yo'],'suffix':'ho'}",
         "prompts=2 max=16 " OPENAI "parse 'hi' before 'ho' 'yo' before 'ho' no_cache bytes=8"},
        {COMPLETIONS, "{'prompt':[[1,2],[3]],'suffix':'ho'}",
         "prompts=2 max=16 " OPENAI "parse [1,2] [3] no_cache bytes=16"},
        {COMPLETIONS, "{'prompt':'hi','echo':true}", "max=16 " OPENAI "parse echo 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':0}",
         "max=16 " OPENAI "logprobs parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':20,'echo':true}",
         "max=16 " OPENAI
         "n_logprobs=20 logprobs parse echo prompt_logprobs 'hi' no_cache bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':21}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':-1}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':1.5}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':true}", "400 logprobs invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','logprobs':false,'echo':true}",
         "max=16 " OPENAI "parse echo 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n':2,'best_of':2}",
         "n=2 max=16 " OPENAI "parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n':2,'best_of':3}",
         "n=3 max=16 " OPENAI "logprobs parse 'hi' bytes=2"},
        {COMPLETIONS, "{'prompt':'hi','n':3,'best_of':2}", "400 best_of invalid_value"},
        {COMPLETIONS, "{'prompt':'hi','best_of':2,'stream':true}", "400 best_of invalid_value"},
        {COMPLETIONS,
         "{'prompt':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a'],'best_of':8}",
         "prompts=16 n=8 max=16 " OPENAI
         "logprobs parse 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' 'a' bytes=16"},
        {COMPLETIONS,
         "{'prompt':['a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a'],'best_of':9}",
         "400 best_of invalid_value"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

static void test_openai_responses(void **state)
{
    static const struct codec_read_row rows[] = {
        {RESPONSES, "{'input':'hi'}", OPENAI "user:'hi' bytes=2"},
        {RESPONSES,
         "{'input':'hi','model':'m','instructions':'be','stream':true,'max_output_tokens':5,'"
         "temperature':0.5,'top_p':0,'priority':-2,'latency_budget_ms':60000,'reasoning':{'effort':"
         "'high'},'chat_template_kwargs':{'a':1}}",
         "model='m' max=5 temp=0.5 top_p=1e-06 system:'be' user:'hi' var(reasoning_effort 'high') "
         "var(a 1) priority=-2 within=60000 streams bytes=4"},
        {RESPONSES, "{'input':'hi','instructions':'','top_logprobs':3}",
         OPENAI "n_logprobs=3 logprobs user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','include':['message.output_text.logprobs']}",
         OPENAI "logprobs user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','include':['reasoning.encrypted_content',5]}",
         OPENAI "user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','include':'x'}", "400 include invalid_type"},
        {RESPONSES, "{'input':'hi','metadata':[]}", "400 metadata invalid_type"},
        {RESPONSES, "{'input':'hi','metadata':{'a':'b'},'user':'u','store':false}",
         OPENAI "user:'hi' bytes=2"},
        {RESPONSES, "{'input':'hi','text':{'format':{'type':'json_object'}}}",
         OPENAI "json:'' user:'hi' bytes=2"},
        {RESPONSES,
         "{'input':'hi','text':{'format':{'type':'json_schema','schema':{'type':'array'}}}}",
         OPENAI "schema:'{'type':'array'}' user:'hi' bytes=18"},
        {RESPONSES, "{'input':'hi','text':{'format':{'type':'odd'}}}",
         "400 text.format invalid_value"},
        {RESPONSES,
         "{'input':'hi','tools':[{'type':'function','name':'lamp'}],'tool_choice':'required','"
         "parallel_tool_calls':false}",
         OPENAI "user:'hi' tool(lamp '' null) choice=required one_call bytes=6"},
        {RESPONSES, "{'input':'hi','tools':[{'type':'function','function':{'name':'lamp'}}]}",
         "400 tools[0] invalid_value"},
        {RESPONSES, "{'input':'hi','tools':[{'type':'web_search'}]}", "400 tools[0] invalid_value"},
        {RESPONSES,
         "{'input':'hi','tools':[{'type':'function','name':'lamp'}],'tool_choice':{'type':'"
         "function','name':'lamp'}}",
         OPENAI "user:'hi' tool(lamp '' null) choice=one bytes=6"},
        {RESPONSES,
         "{'input':[{'role':'user','content':'a'},{'type':'message','role':'assistant','content':[{"
         "'type':'output_text','text':'b'}]},{'type':'function_call','call_id':'c1','name':'lamp','"
         "arguments':'{}'},{'type':'function_call','call_id':'c2','name':'door'},{'type':'function_"
         "call_output','call_id':'c1','output':'ok'},{'type':'function_call_output','call_id':'c2',"
         "'output':[{'type':'input_text','text':'x'}]},{'type':'function_call','call_id':'c3','"
         "name':'gate'}]}",
         OPENAI
         "user:'a' assistant:'b' call(c1 lamp '{}') call(c2 door '{}') tool:'ok' name='lamp' "
         "for='c1' tool:'x' name='door' for='c2' assistant:'' call(c3 gate '{}') bytes=11"},
        {RESPONSES,
         "{'input':[{'type':'function_call','call_id':'c1','name':'lamp'},{'role':'user','content':"
         "'a'},{'type':'function_call','call_id':'c2','name':'lamp'}]}",
         OPENAI "assistant:'' call(c1 lamp '{}') user:'a' assistant:'' call(c2 lamp '{}') bytes=5"},
        {RESPONSES, "{'input':[{'type':'function_call','call_id':'','name':'lamp'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call','name':'lamp'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call','call_id':'c1'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES,
         "{'input':[{'type':'function_call','call_id':'c1','name':'lamp','arguments':5}]}",
         "400 input[0] invalid_type"},
        {RESPONSES, "{'input':[{'type':'function_call_output','call_id':'','output':'x'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call_output','output':'x'}]}",
         "400 input[0] invalid_value"},
        {RESPONSES, "{'input':[{'type':'function_call_output','call_id':'c1','output':5}]}",
         "400 input[0] invalid_value"},
        {RESPONSES,
         "{'input':[{'type':'function_call_output','call_id':'c1','output':[{'type':'image'}]}]}",
         "400 input[0].output invalid_value"},
        {RESPONSES,
         "{'input':[{'type':'reasoning','id':'rs_1','summary':[]},{'role':'user','content':'a'}]}",
         OPENAI "user:'a' bytes=1"},
        {RESPONSES, "{'input':[{'type':'reasoning','summary':[]}]}", "400 input invalid_value"},
        {RESPONSES, "{'input':[{'type':'odd'}]}", "400 input[0] unsupported_parameter"},
        {RESPONSES, "{'input':[{'role':'user','content':'a'},{'role':'odd','content':'a'}]}",
         "400 input[1].role invalid_value"},
        {RESPONSES, "{'input':[]}", "400 input invalid_type"},
        {RESPONSES, "{'input':5}", "400 input invalid_type"},
        {RESPONSES, "{}", "400 input missing_required_parameter"},
        {RESPONSES, "{'input':'hi','previous_response_id':'resp_none'}",
         "404 previous_response_id response_not_found"},
        {RESPONSES, "{'input':'hi','background':true,'store':false}",
         "400 background invalid_value"},
        {RESPONSES, "{'input':'hi','background':true,'stream':true}",
         "400 background invalid_value"},
        {RESPONSES, "{'input':'hi','background':false}", OPENAI "user:'hi' bytes=2"},
        {"/v1/responses/input_tokens", "{'input':'hi'}",
         OPENAI "prompt_only user:'hi' no_cache bytes=2"},
        {"/v1/chat/completions/input_tokens", "{" HI "}",
         OPENAI "prompt_only user:'hi' no_cache bytes=2"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openai_chat),      cmocka_unit_test(test_tools),
        cmocka_unit_test(test_constraints),      cmocka_unit_test(test_openai_completions),
        cmocka_unit_test(test_openai_responses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
