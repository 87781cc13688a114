/* logprob_json.c - see logprob_json.h. */
#include "gateway/api/logprob_json.h"

#include "gateway/call/answer.h"
#include "wire/json_out.h"

void logprob_json_number(struct json_out *j, float logprob)
{
    json_out_float(j, logprob < -9999.0f ? -9999.0f : logprob);
}

static void put_one(struct json_out *j, const struct sink_logprob *l)
{
    json_out_member_strn(j, "token", l->text, l->text_bytes);
    json_out_key(j, "logprob");
    logprob_json_number(j, l->logprob);
    json_out_member_array(j, "bytes");
    for (size_t i = 0; i < l->text_bytes; i++)
        json_out_uint(j, (uint8_t)l->text[i]);
    json_out_array_end(j);
}

void logprob_json(struct json_out *j, const struct sink_token *t)
{
    json_out_object(j);
    put_one(j, &t->logprobs[0]);
    json_out_member_array(j, "top_logprobs");
    for (uint32_t i = 1; i < t->n_logprobs; i++) {
        json_out_object(j);
        put_one(j, &t->logprobs[i]);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

void logprob_json_list(struct json_out *j, struct answer_choice *ch)
{
    struct answer_cursor at = {0};
    struct sink_token t;
    json_out_array(j);
    while (answer_next_token(ch, &at, &t))
        if (t.logprobs)
            logprob_json(j, &t);
    json_out_array_end(j);
}
