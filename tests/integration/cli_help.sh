#!/usr/bin/env bash
# Help pages and usage errors, word for word.
. "$(dirname "$0")/lib.sh"
mkdir -p "$here/golden"

run 0; golden help; empty err
run 0 help; golden help
run 0 --help; golden help
for c in init config route router ask home eval calibrate run pull push import list show ps cp rm gc generate chat classify tag pii embed rerank score anomaly summarize listen satellite wake transcribe say serve mcp node gateway tokenize detokenize logits perplexity bench load profile bundle doctor health top trace model cluster rollout ca audit store index shard sim completion manual; do
    run 0 $c --help; golden "help-$c"; empty err
    run 0 help $c; golden "help-$c"
done
for v in show convert quantize lora sign verify encrypt decrypt delta patch list load unload; do
    run 0 model $v --help; golden "help-model-$v"; empty err
done
for v in export fit run; do
    run 0 anomaly $v --help; golden "help-anomaly-$v"; empty err
done
for v in init issue list revoke rotate show; do
    run 0 ca $v --help; golden "help-ca-$v"; empty err
done
for v in init join token status nodes models top doctor deploy remove plan drain undrain desired events; do
    run 0 cluster $v --help; golden "help-cluster-$v"; empty err
done
for v in start status pause promote undo history; do
    run 0 rollout $v --help; golden "help-rollout-$v"; empty err
done
for v in verify export; do
    run 0 audit $v --help; golden "help-audit-$v"; empty err
done
for v in list add fetch verify remove tag gc; do
    run 0 store $v --help; golden "help-store-$v"; empty err
done
for v in ollama hf-cache; do
    run 0 import $v --help; golden "help-import-$v"; empty err
done
for v in add query ask stats remove; do
    run 0 index $v --help; golden "help-index-$v"; empty err
done
run 0 router fit --help; golden help-router-fit; empty err
run 0 shard plan --help; golden help-shard-plan; empty err
for v in classify tag embed rerank summarize score perplexity cascade ask pii; do
    run 0 eval $v --help; golden "help-eval-$v"; empty err
done
for v in check run trace draw; do
    run 0 flow $v --help; golden "help-flow-$v"; empty err
done
for v in check list import; do
    run 0 home $v --help; golden "help-home-$v"; empty err
done
for v in check explain schema reference; do
    run 0 config $v --help; golden "help-config-$v"; empty err
done
run 0 version; has out "shoal "
run 0 --version; has out "shoal "

i=0
usage() { # arguments that are a usage error
    run 2 "$@"
    empty out
    i=$((i + 1))
    golden "usage-$(printf %02d $i)"
}
usage frobnicate
usage genrate
usage --frob
usage generate --tmp 0.5
usage generate -x
usage perplexity text.txt
usage generate -m model.gguf one two
usage generate -m
usage generate -m x --temp hot "a"
usage generate -m x --temp 1000 "a"
usage generate -m x --top-k=-3 "a"
usage generate -m x -n 1e3 "a"
usage generate -m x --kv q7 "a"
usage generate -m x --echo=yes "a"
usage generate -m x --logit-bias 5 "a"
usage generate -m x --logprobs 2 "a"
usage generate -m x --seed "" "a"
usage generate -m x -f prompt.txt "a"
usage generate -m x --tokens 1,b,3
usage --log-level loud generate -m x "a"
usage tokenize
usage logits
usage perplexity -m x
usage bench -m x -p 12,y
usage bench -m x -p 0 -n 0
usage model
usage model shwo
usage model show
usage model quantize a b
usage model quantize a b --type q3
usage model convert a
usage model load
usage model load a=
usage model unload
usage completion
usage completion csh
usage rollout start
usage rollout start reply
usage rollout start reply --sha256 12
usage rollout start reply x.gguf --share 5
usage rollout start reply x.gguf --kind canary --labels y
usage rollout start reply x.gguf --source ftp://depot/x.gguf
usage cluster deploy reply --source x.gguf
finish
