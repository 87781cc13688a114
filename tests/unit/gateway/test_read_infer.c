/* test_read_infer.c - what requests to specialists become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/codec_read.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

static void test_specialists(void **state)
{
    static const struct codec_read_row rows[] = {
        {"/v1/embeddings", "{'input':'hi'}", "kind='embed' 'hi' bytes=2"},
        {"/v1/embeddings",
         "{'input':['a','b'],'model':'m','dimensions':8,'prompt_name':'q','encoding_format':'"
         "base64','priority':-1,'latency_budget_ms':60000,'truncate':false}",
         "model='m' kind='embed' 'a' 'b' prompt='q' dimensions=8 whole priority=-1 within=60000 "
         "bytes=2"},
        {"/v1/embeddings", "{'input':[5,6],'prompt_name':''}",
         "kind='embed' [5,6] prompt='' bytes=8"},
        {"/v1/embeddings", "{'input':[[5,6],[7]],'encoding_format':'float'}",
         "kind='embed' [5,6] [7] bytes=12"},
        {"/v1/embeddings", "{'input':[[5],6]}", "400 input invalid_type"},
        {"/v1/embeddings", "{'input':[[5],[]]}", "400 input invalid_type"},
        {"/v1/embeddings", "{'input':[5,-1]}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':[5,2147483648]}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':[5,1.5]}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':[5,'a']}", "400 input invalid_value"},
        {"/v1/embeddings", "{'input':''}", "kind='embed' ''"},
        {"/v1/embeddings", "{'input':[]}", "400 input invalid_value"},
        {"/v1/embeddings", "{}", "400 input missing_required_parameter"},
        {"/v1/embeddings", "{'input':5}", "400 input invalid_type"},
        {"/v1/embeddings", "{'input':{'text':'x'}}", "kind='embed' 'x' bytes=1"},
        {"/v1/embeddings", "{'input':'hi','encoding_format':'odd'}",
         "400 encoding_format invalid_value"},
        {"/v1/embeddings", "{'input':'hi','truncate':true}", "kind='embed' 'hi' bytes=2"},
        {"/v1/embeddings", "{'input':'hi','truncate':'NONE'}", "kind='embed' 'hi' whole bytes=2"},
        {"/v1/embeddings", "{'input':'hi','truncate':'End'}", "kind='embed' 'hi' bytes=2"},
        {"/v1/embeddings", "{'input':'hi','truncate':'START'}", "400 truncate invalid_value"},
        {"/v1/embeddings", "{'input':'hi','truncate':5}", "400 truncate invalid_value"},
        {"/v1/classify", "{'input':['a'],'labels':'l','top':3}",
         "kind='classify' 'a' labels='l' bytes=1"},
        {"/v1/classify", "{'input':''}", "400 input invalid_value"},
        {"/v1/classify", "{'input':['a',5]}", "400 input invalid_type"},
        {"/v1/classify", "{'input':[5]}", "400 input invalid_type"},
        {"/v1/entities", "{'input':'a'}", "kind='tag' 'a' bytes=1"},
        {"/v1/rerank", "{'query':'q','documents':['a',{'text':'b'}],'top_n':1,'raw':true}",
         "kind='rerank' 'a' 'b' query='q' raw bytes=2"},
        {"/v1/rerank",
         "{'query':'q','texts':['a'],'raw_scores':true,'truncation_direction':'Right'}",
         "kind='rerank' 'a' query='q' raw bytes=1"},
        {"/v1/rerank", "{'query':'','documents':['a']}", "400 query missing_required_parameter"},
        {"/v1/rerank", "{'documents':['a']}", "400 query missing_required_parameter"},
        {"/v1/rerank", "{'query':'q'}", "400 documents missing_required_parameter"},
        {"/v1/rerank", "{'query':'q','documents':[]}", "400 documents invalid_value"},
        {"/v1/rerank", "{'query':'q','texts':[]}", "400 texts invalid_value"},
        {"/v1/rerank", "{'query':'q','texts':['a'],'truncation_direction':'left'}",
         "400 truncation_direction unsupported_parameter"},
        {"/v1/rerank", "{'query':'q','documents':['a'],'rank_fields':['text']}",
         "kind='rerank' 'a' query='q' bytes=1"},
        {"/v1/rerank", "{'query':'q','documents':['a'],'rank_fields':['title']}",
         "400 rank_fields unsupported_parameter"},
        {"/v1/summarize", "{'input':'a','max_sentences':2,'max_tokens':3,'beams':4}",
         "kind='summarize' 'a' sentences=2 max=3 beams=4 bytes=1"},
        {"/v1/score", "{'input':[1,null,2.5]}", "kind='score' 1,nan,2.5 bytes=24"},
        {"/v1/score", "{'input':[[1,2],[3]],'raw':true}", "kind='score' 1,2 3 raw bytes=24"},
        {"/v1/score", "{'input':[[1,2],[3,4]],'stream':'s'}",
         "kind='score' 1,2,3,4 stream='s' columns=2 bytes=32"},
        {"/v1/score", "{'input':[1,2],'stream':'s'}",
         "kind='score' 1,2 stream='s' columns=2 bytes=16"},
        {"/v1/score", "{'series':[[1,2],[3,4]]}", "kind='score' 1,2,3,4 columns=2 bytes=32"},
        {"/v1/score", "{'series':[[1,2],[3]]}", "400 series invalid_value"},
        {"/v1/score", "{'series':[[1],5]}", "400 series invalid_value"},
        {"/v1/score", "{'series':[]}", "400 series invalid_type"},
        {"/v1/score", "{'series':[[]]}", "400 series invalid_type"},
        {"/v1/score", "{'series':5}", "400 series invalid_type"},
        {"/v1/score", "{'series':[[1]],'input':[1]}", "400 series invalid_value"},
        {"/v1/score", "{}", "400 input missing_required_parameter"},
        {"/v1/score", "{'input':[]}", "400 input invalid_type"},
        {"/v1/score", "{'input':[[]]}", "400 input invalid_type"},
        {"/v1/score", "{'input':['a']}", "400 input invalid_type"},
        {"/v1/score", "{'input':[1e999]}", "400 input invalid_value"},
        {"/v1/score", "{'input':[[1],'a']}", "400 input invalid_type"},
        {"/v1/score", "{'series':[['a']]}", "400 series invalid_type"},
        {"/api/embed", "{'input':['a','b'],'dimensions':4}",
         "kind='embed' 'a' 'b' dimensions=4 bytes=2"},
        {"/api/embeddings", "{'prompt':'a'}", "kind='embed' 'a' bytes=1"},
        {"/api/embeddings", "{}", "400 'prompt' is missing"},
        {"/embedding", "{'content':'a'}", "kind='embed' 'a' bytes=1"},
        {"/embedding", "{'input':[1,2]}", "kind='embed' [1,2] bytes=8"},
        {"/embedding", "{'content':'a','embd_normalize':2}", "kind='embed' 'a' bytes=1"},
        {"/embedding", "{'content':'a','embd_normalize':1}",
         "400 embd_normalize unsupported_parameter"},
        {"/embed", "{'inputs':['a'],'normalize':true,'prompt_name':'q','dimensions':4}",
         "kind='embed' 'a' prompt='q' dimensions=4 bytes=1"},
        {"/embed", "{'inputs':'a','normalize':false}", "400 normalize unsupported_parameter"},
        {"/embed", "{}", "400 inputs missing_required_parameter"},
        {"/embed", "{'inputs':'a','parameters':5}", "400 parameters invalid_type"},
        {"/predict", "{'inputs':'a','labels':'l','parameters':{'top_k':2}}",
         "kind='classify' 'a' labels='l' bytes=1"},
        {"/predict", "{'inputs':[5]}", "400 inputs invalid_type"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':['b','c']}}",
         "kind='embed' 'a' 'b' 'c' bytes=3"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':[]}}",
         "400 inputs invalid_value"},
        {"/similarity", "{'inputs':{'sentences':['a']}}", "400 inputs invalid_type"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':['b',5]}}",
         "400 inputs invalid_type"},
        {"/similarity", "{'inputs':{'source_sentence':'a','sentences':'b'}}",
         "400 inputs invalid_type"},
        {"/similarity", "{'inputs':'a'}", "400 inputs invalid_type"},
        {"/v1/process", "{'text':'lights off'}", "ask='lights off' reply bytes=10"},
        {"/v1/process",
         "{'text':'lights "
         "off','model':'ask','stream':true,'explain':true,'reply':false,'priority':-4,'latency_"
         "budget_ms':60000}",
         "ask='lights off' explain priority=-4 within=60000 streams bytes=10"},
        {"/v1/process", "{'text':'lights off','session_id':'s'}",
         "ask='lights off' reply session='s' bytes=10"},
        {"/v1/process", "{'confirm':'t'}", "ask='' confirm='t' reply"},
        {"/v1/process", "{}", "400 text missing_required_parameter"},
        {"/v1/process", "{'text':'x','model':'odd'}", "404 model model_not_found"},
        {"/v1/process", "{'text':'x','input':{'a':1}}", "400 input"},
        {"/v1/process", "{'text':'x','input':5}", "400 input"},
    };
    (void)state;
    codec_read_check(rows, N(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_specialists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
