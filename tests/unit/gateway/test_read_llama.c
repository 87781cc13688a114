/* test_read_llama.c - what requests of llama.cpp, Ollama and Text Generation Inference become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/codec_read.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

#define HI "'messages':[{'role':'user','content':'hi'}]"
#define DOOR "{'function':{'name':'door'}}"
#define DOOR_SEEN "tool(door '' null)"
/* the defaults of an API */
#define OPENAI "temp=1 top_p=1 "
#define LLAMA "temp=0.8 top_k=40 top_p=0.95 min_p=0.05 repeat=1 last=64 "
#define OLLAMA "temp=0.8 top_k=40 top_p=0.9 repeat=1.1 last=64 "
#define TGI "max=100 top_p=1 repeat=1 "

static void test_llamacpp(void **state)
{
    static const struct codec_read_row rows[] = {
        {"/completion", "{'prompt':'hi'}", LLAMA "parse 'hi' bytes=2"},
        {"/completion",
         "{'prompt':'hi','model':'m','stream':true,'return_progress':true,'n_predict':7,'"
         "temperature':-1,'top_k':-1,'top_p':0,'min_p':-0.5,'repeat_penalty':1.5,'repeat_last_n':-"
         "1,'presence_penalty':1,'frequency_penalty':2,'seed':5,'ignore_eos':true,'n_probs':3,'"
         "post_sampling_probs':true,'priority':-1,'latency_budget_ms':60000}",
         "model='m' max=7 top_p=1e-06 repeat=1.5 last=1048576 presence=1 frequency=2 n_logprobs=3 "
         "logprobs seed=5 ignore_end parse progress drawn 'hi' priority=-1 within=60000 streams "
         "no_cache bytes=2"},
        {"/completion",
         "{'prompt':'hi','n_predict':0,'temperature':0,'top_k':0,'top_p':1.5,'min_p':0,'repeat_"
         "penalty':1.5,'repeat_last_n':0,'presence_penalty':1,'frequency_penalty':2,'seed':-1,'"
         "return_progress':true,'post_sampling_probs':true}",
         "top_p=1 repeat=1 parse prompt_only 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','max_tokens':3,'seed':0,'stop':['x'],'top_p':1}",
         "max=3 temp=0.8 top_k=40 top_p=1 min_p=0.05 repeat=1 last=64 seed=0 stop='x' parse 'hi' "
         "no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','cache_prompt':false,'n_keep':5}",
         LLAMA "parse fresh keep:5 'hi' no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','cache_prompt':true,'n_keep':-1}",
         LLAMA "parse keep:16777216 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','n_predict':-2}", LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':[[5,1.5],[6,false],['word',2]]}",
         LLAMA "bias(5 1.5) bias(6 -inf) bias('word' 2) parse 'hi' no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':{'5':1,'word':false,'7x':3}}",
         LLAMA "bias(5 1) bias('word' -inf) bias('7x' 3) parse 'hi' no_cache bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':[]}", LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','logit_bias':[[5]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[[5,true]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[[-1,1]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[['',1]]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','logit_bias':[5]}", "400 logit_bias invalid_value"},
        {"/completion", "{'prompt':'hi','response_fields':['content']}",
         LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','response_fields':'content'}",
         "400 response_fields invalid_value"},
        {"/completion", "{'prompt':'hi','response_fields':[5]}",
         "400 response_fields invalid_type"},
        {"/completion",
         "{'prompt':'hi','response_fields':['a','a','a','a','a','a','a','a','a','a','a','a','a','a'"
         ",'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a',"
         "'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a']}",
         LLAMA "parse 'hi' bytes=2"},
        {"/completion",
         "{'prompt':'hi','response_fields':['a','a','a','a','a','a','a','a','a','a','a','a','a','a'"
         ",'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a',"
         "'a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','a','"
         "a','a','a','a','a','a','a']}",
         "400 response_fields invalid_value"},
        {"/completion", "{'prompt':'hi','grammar':'root ::= x'}",
         LLAMA "gbnf:'root ::= x' parse 'hi' bytes=12"},
        {"/completion", "{'prompt':'hi','mirostat':0}", LLAMA "parse 'hi' bytes=2"},
        {"/completion", "{'prompt':'hi','mirostat':1}", "400 mirostat unsupported_parameter"},
        {"/completion", "{'prompt':['a',5,6,'b',7]}",
         LLAMA "parse  piece('a') piece([5,6]) piece('b') piece([7]) no_cache bytes=14"},
        {"/completion", "{'prompt':[['a',5],'b',[6]]}",
         "prompts=3 " LLAMA "parse  piece('a') piece([5]) 'b' [6] no_cache bytes=10"},
        {"/completion", "{'prompt':['a',5,true]}", "400 prompt invalid_type"},
        {"/completion", "{'prompt':['a',5,-1]}", "400 prompt invalid_value"},
        {"/completion", "{'prompt':{'prompt_string':'x'}}", LLAMA "parse 'x' bytes=1"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b'}",
         LLAMA "'a' before 'b' no_cache bytes=2"},
        {"/infill",
         "{'input_prefix':'a','input_suffix':'','prompt':'c','input_extra':[{'text':'t','filename':"
         "'f'},{'text':'u'}]}",
         LLAMA "'ac' before '' piece('t' file='f') piece('u') no_cache bytes=4"},
        {"/infill", "{'input_prefix':'a'}", "400 input_suffix missing_required_parameter"},
        {"/infill", "{'input_suffix':'a'}", "400 input_prefix missing_required_parameter"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b','prompt':5}",
         "400 prompt invalid_type"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b','input_extra':5}",
         "400 input_extra invalid_value"},
        {"/infill", "{'input_prefix':'a','input_suffix':'b','input_extra':[{'filename':'f'}]}",
         "400 input_extra invalid_value"},
        {"/infill",
         "{'input_prefix':'a','input_suffix':'b','input_extra':[{'text':'t','filename':5}]}",
         "400 input_extra invalid_value"},
        {"/apply-template",
         "{" HI ",'model':'m','chat_template_kwargs':{'a':1},'tools':[" DOOR
         "],'add_generation_prompt':false}",
         "model='m' special echo prompt_only user:'hi' var(add_generation_prompt false) var(a "
         "1) " DOOR_SEEN " bytes=6"},
        {"/apply-template", "{'messages':[{'role':'assistant','content':'a'}]}",
         "special echo prompt_only assistant:'a' var(continue_final_message true) bytes=1"},
        {"/apply-template", "{}", "400 messages missing_required_parameter"},
        {"/tokenize", "{'text':'hi','model':'m'}", "model='m' flags=1 'hi' bytes=2"},
        {"/tokenize", "{'content':'hi'}", "flags=2 'hi' bytes=2"},
        {"/tokenize", "{'content':'hi','add_special':true,'parse_special':false}",
         "flags=1 'hi' bytes=2"},
        {"/tokenize", "{'prompt':'hi','parse_special':true}", "flags=3 'hi' bytes=2"},
        {"/tokenize", "{'inputs':'hi'}", "flags=1 'hi' bytes=2"},
        {"/tokenize", "{'inputs':['hi'],'add_special_tokens':false}", "'hi' bytes=2"},
        {"/tokenize", "{'inputs':['hi','you']}", "400 inputs invalid_type"},
        {"/tokenize", "{'add_special':false}", "400 text missing_required_parameter"},
        {"/detokenize", "{'tokens':[5,6],'special':true}", "decode flags=4[5,6] bytes=8"},
        {"/detokenize", "{'tokens':[]}", "decode[]"},
        {"/detokenize", "{'tokens':[5,-1]}", "400 'tokens' must hold token ids"},
        {"/detokenize", "{'tokens':[2147483648]}", "400 'tokens' must hold token ids"},
        {"/detokenize", "{'tokens':[1.5]}", "400 'tokens' must hold token ids"},
        {"/detokenize", "{'tokens':5}", "400 tokens invalid_type"},
        {"/detokenize", "{}", "400 tokens invalid_type"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

static void test_ollama(void **state)
{
    static const struct codec_read_row rows[] = {
        {"/api/chat", "{" HI "}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/chat",
         "{" HI ",'model':'m','stream':false,'logprobs':true,'top_logprobs':2,'think':true}",
         "model='m' " OLLAMA "n_logprobs=2 logprobs user:'hi' var(enable_thinking true) bytes=2"},
        {"/api/chat", "{" HI ",'think':'high','top_logprobs':2}",
         OLLAMA "user:'hi' var(reasoning_effort 'high') var(enable_thinking true) streams bytes=2"},
        {"/api/chat", "{" HI ",'think':false}",
         OLLAMA "user:'hi' var(enable_thinking false) streams bytes=2"},
        {"/api/chat", "{" HI ",'think':''}",
         OLLAMA "user:'hi' var(enable_thinking false) streams bytes=2"},
        {"/api/chat", "{" HI ",'think':5}", "400 'think' must be true, false or a level"},
        {"/api/chat", "{" HI ",'tools':[" DOOR "]}",
         OLLAMA "user:'hi' " DOOR_SEEN " streams bytes=6"},
        {"/api/chat", "{'messages':[{'role':'assistant','content':'a'}]}",
         OLLAMA "assistant:'a' var(continue_final_message true) streams bytes=1"},
        {"/api/chat",
         "{" HI ",'options':{'seed':7.9,'temperature':0.5,'top_k':3.7,'top_p':0.5,'min_p':0.25,'"
         "num_predict':4.9,'repeat_penalty':2,'repeat_last_n':8,'presence_penalty':1,'"
         "frequency_penalty':-1,'stop':['x']}}",
         "max=4 temp=0.5 top_k=3 top_p=0.5 min_p=0.25 repeat=2 last=8 presence=1 frequency=-1 "
         "seed=7 stop='x' user:'hi' streams bytes=2"},
        {"/api/chat",
         "{" HI
         ",'options':{'seed':-3,'temperature':-1,'top_k':0,'top_p':0,'min_p':2,'num_predict':0,'"
         "repeat_penalty':11,'repeat_last_n':-1,'presence_penalty':-11,'frequency_penalty':11}}",
         "top_p=1e-06 min_p=1 repeat=10 last=1048576 presence=-10 frequency=10 seed=-3 user:'hi' "
         "streams bytes=2"},
        {"/api/chat",
         "{" HI ",'options':{'temperature':101,'top_k':2e9,'top_p':2,'min_p':-1,'num_predict':1e9,'"
         "repeat_penalty':-1,'repeat_last_n':0,'odd':1}}",
         "max=1.677722e+07 temp=100 top_k=1e+09 top_p=1 repeat=1 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'options':{'repeat_last_n':2e9,'num_predict':1}}",
         "max=1 temp=0.8 top_k=40 top_p=0.9 repeat=1.1 last=1048576 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'shift':false,'options':{'num_keep':4.7}}",
         OLLAMA "no_shift keep:4 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'shift':true,'options':{'num_keep':-1}}",
         OLLAMA "keep:16777216 user:'hi' streams bytes=2"},
        {"/api/chat", "{" HI ",'options':5}", "400 'options' must be an object"},
        {"/api/chat", "{" HI ",'options':{'seed':'a'}}", "400 'seed' must be a number"},
        {"/api/generate", "{'prompt':'hi'}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','system':'be','template':'T','think':true}",
         OLLAMA "system:'be' user:'hi' var(enable_thinking true) template='T' streams bytes=4"},
        {"/api/generate", "{'prompt':'hi','system':'','template':''}",
         OLLAMA "user:'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','raw':true,'system':'be','template':'T','think':true}",
         OLLAMA "parse 'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','suffix':'ho'}",
         OLLAMA "'hi' before 'ho' streams no_cache bytes=4"},
        {"/api/generate", "{'prompt':'hi','suffix':'','raw':true}",
         OLLAMA "parse 'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'','suffix':'ho'}",
         OLLAMA "'' before 'ho' streams no_cache bytes=2"},
        {"/api/generate", "{'prompt':'hi','context':[]}", OLLAMA "user:'hi' streams bytes=2"},
        {"/api/generate",
         "{'prompt':'hi','system':'s','context':[341041,13,256,6356992,513,6422528,99]}",
         OLLAMA "system:'s' user:'a' assistant:'bc' user:'hi' streams bytes=9"},
        {"/api/generate", "{'prompt':'hi','context':[341041,13,256,6356992,513,6422528]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,13,256,6356992,513,6422528,99,0]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341042,13,256,6356992,513,6422528,99]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,14,256,6356992,513,6422528,99]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,5,256,0]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,5,0,0]}",
         OLLAMA "user:'' user:'hi' streams bytes=2"},
        {"/api/generate", "{'prompt':'hi','context':[341041,5,2,0]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,3,16777216]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[341041,-1]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':[1,2]}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','context':5}",
         "400 'context' must come from an earlier answer of th"},
        {"/api/generate", "{'prompt':'hi','keep_alive':'5x'}",
         "400 'keep_alive' must be a duration such as '5m', or"},
        {"/api/generate", "{'prompt':'hi','keep_alive':''}",
         "400 'keep_alive' must be a duration such as '5m', or"},
        {"/api/generate", "{'prompt':'hi','keep_alive':[]}",
         "400 'keep_alive' must be a duration such as '5m', or"},
        {"/api/generate", "{'prompt':'hi','images':['x']}",
         "400 'images' is not supported yet; leave it out, or "},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

static void test_tgi(void **state)
{
    static const struct codec_read_row rows[] = {
        {"/generate", "{'inputs':'hi'}", TGI "parse 'hi' bytes=2"},
        {"/", "{'inputs':'hi'}", TGI "parse 'hi' bytes=2"},
        {"/generate_stream", "{'inputs':'hi','parameters':{'top_n_tokens':2}}",
         TGI "n_logprobs=2 logprobs parse 'hi' streams bytes=2"},
        {"/generate", "{'inputs':'hi','stream':true}", TGI "logprobs parse 'hi' streams bytes=2"},
        {"/generate",
         "{'inputs':'hi','model':'m','parameters':{'max_new_tokens':5,'temperature':0.5,'top_k':3,'"
         "top_p':0.25,'repetition_penalty':1.5,'frequency_penalty':-1,'seed':0,'stop':['x'],'"
         "details':true,'top_n_tokens':2,'return_full_text':true}}",
         "model='m' max=5 temp=0.5 top_k=3 top_p=0.25 repeat=1.5 frequency=-1 n_logprobs=2 "
         "logprobs seed=0 stop='x' parse 'hi' no_cache bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'do_sample':true,'top_n_tokens':2}}",
         "max=100 " OPENAI "repeat=1 parse 'hi' bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'top_k':3,'stop_sequences':['y']}}",
         "max=100 temp=1 top_k=3 top_p=1 repeat=1 stop='y' parse 'hi' no_cache bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'top_p':0.5}}",
         "max=100 temp=1 top_p=0.5 repeat=1 parse 'hi' bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'top_p':0}}",
         "max=100 temp=1 top_p=1e-06 repeat=1 parse 'hi' bytes=2"},
        {"/generate",
         "{'inputs':'hi','parameters':{'grammar':{'type':'json','value':{'type':'array'}}}}",
         TGI "schema:'{'type':'array'}' parse 'hi' bytes=18"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'type':'regex','value':'a+'}}}",
         TGI "regex:'a+' parse 'hi' bytes=4"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'type':'odd','value':'a+'}}}",
         "400 parameters.grammar invalid_value"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'type':'json'}}}",
         "400 parameters.grammar invalid_value"},
        {"/generate", "{'inputs':'hi','parameters':{'grammar':{'value':'x'}}}",
         "400 parameters.grammar invalid_value"},
        {"/generate", "{'inputs':'hi','parameters':{'odd':1}}",
         "400 parameters.odd unknown_parameter"},
        {"/generate", "{'inputs':'hi','parameters':5}", "400 parameters invalid_type"},
        {"/generate", "{'inputs':'hi','parameters':{'best_of':1}}", TGI "parse 'hi' bytes=2"},
        {"/generate", "{'inputs':'hi','parameters':{'best_of':2}}",
         "400 parameters.best_of unsupported_parameter"},
        {"/generate", "{}", "400 inputs missing_required_parameter"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llamacpp),
        cmocka_unit_test(test_ollama),
        cmocka_unit_test(test_tgi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
