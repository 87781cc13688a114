#!/usr/bin/env bash
# The installed library: the examples build against it with pkg-config, shared and static, and run;
# it exports only the public names. Arguments: shoal, cli_tool, build folder, C compiler.
. "$(dirname "$0")/lib.sh"
cc=$4
DESTDIR=$tmp/stage cmake --install "$build" --prefix /usr/local >install.log || { cat install.log; fail "install"; }
prefix=$tmp/stage/usr/local
pc=$(dirname "$(find "$prefix" -name shoal.pc)")
export PKG_CONFIG_PATH=$pc
lib=$(dirname "$pc")

# Names: what the headers declare, no more and no less.
public() { # nm options, file
    nm --defined-only "$@" | awk 'NF == 3 && $2 != "A" {print $3}' | sort -u
}
# Lines of comments do not count: they have examples.
declared=$(grep -hvE '^ *(/\*|\*)' "$prefix"/include/shoal/*.h | grep -oE '\bshoal_[a-z_]+\(' | tr -d '(' | sort -u)
differ "names are declared" "$declared" ""
same "names of the shared library" "$(public -D "$lib/libshoal.so" | sed 's/@.*//' | comm -3 - <(echo "$declared"))" ""
same "names without a version" "$(public -D "$lib/libshoal.so" | grep -v '@@SHOAL_[0-9.]*$')" ""
same "versions" "$(public -D "$lib/libshoal.so" | sed 's/.*@@//' | sort -u)" \
    "$(sed -n 's/^\(SHOAL_[0-9.]*\) {.*/\1/p' "$root/packaging/libshoal.map" | sort -u)"
same "names of the static library" "$(public -g "$lib/libshoal.a" | comm -3 - <(echo "$declared"))" ""
same "its name for the loader" "$(readelf -d "$lib/libshoal.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" \
    "libshoal.so.$(pkg-config --modversion shoal | cut -d. -f1-2)"

# Headers: each stands alone, in C11 and in C++.
cxx=$(command -v g++ c++ clang++-14 | head -n 1)
differ "a C++ compiler" "$cxx" ""
for header in "$prefix"/include/shoal/*.h; do
    name=$(basename "$header")
    printf '#include <shoal/%s>\nint use(void);\nint use(void) { return SHOAL_OK; }\n' "$name" >one.c
    [ "$name" != shoal_version.h ] || sed -i 's/SHOAL_OK/SHOAL_VERSION_NUMBER/' one.c
    checked=$((checked + 2))
    "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags shoal) -fsyntax-only one.c || fail "$name in C"
    "$cxx" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags shoal) -fsyntax-only one.c || fail "$name in C++"
done
cat >use.cc <<'C'
#include <shoal/shoal.h>
int use(shoal_engine *engine, shoal_task **task)
{
    shoal_task_opts opts;
    SHOAL_INIT(&opts);
    opts.max_tokens = 3;
    return shoal_task_submit(engine, &opts, task, nullptr);
}
C
checked=$((checked + 1))
"$cxx" -std=c++11 -Wall -Wextra -Werror $(pkg-config --cflags shoal) -fsyntax-only use.cc || fail "C++ use"

# The examples in the headers compile; that of shoal.h is a whole program, and links.
for header in "$prefix"/include/shoal/*.h; do
    name=$(basename "$header" .h)
    printf '#include <%s>\n' shoal/shoal.h stdio.h time.h unistd.h >"$name.c"
    awk '/^ \* Example: / {on = 1; next}
        on && /^ \*( +.*)?( \*\/)?$/ && !/^ \* [^ ]/ {sub(/ \*\/$/, ""); sub(/^ \*(     )?/, ""); print; next}
        on {exit}' "$header" >>"$name.c"
    checked=$((checked + 1))
    [ "$(wc -l <"$name.c")" -gt 10 ] || fail "$name.h has no example"
    "$cc" -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function $(pkg-config --cflags shoal) -c -o "$name.o" "$name.c" ||
        fail "the example of $name.h does not compile"
done
"$cc" -o first shoal.o $(pkg-config --libs shoal) || fail "the example of shoal.h does not link"
LD_LIBRARY_PATH=$lib ./first >out 2>err && fail "the example of shoal.h finds a model"
has err "cannot open model.gguf"
readelf -V first | grep -q 'Name: SHOAL_0.1' || fail "a program does not ask for the version it was linked against"

# Examples.
example() { # name, then arguments of the example; wants the file `want`
    local name=$1 libs
    shift
    checked=$((checked + 4))
    "$cc" -std=c11 -Wall -Wextra -Werror "$root/examples/$name.c" -o "$name-shared" $(pkg-config --cflags --libs shoal) ||
        fail "$name: shared does not link"
    LD_LIBRARY_PATH=$lib "./$name-shared" "$@" >out 2>err || { fail "$name: shared does not run"; cat err; }
    cmp out want || fail "$name: the shared library gives another text than the program"
    libs=$(pkg-config --static --libs shoal)
    "$cc" -std=c11 -Wall -Wextra -Werror "$root/examples/$name.c" -o "$name-static" $(pkg-config --cflags shoal) ${libs/-lshoal/-l:libshoal.a} ||
        fail "$name: static does not link"
    "./$name-static" "$@" >out 2>err || { fail "$name: static does not run"; cat err; }
    cmp out want || fail "$name: the static library gives another text than the program"
}
run 0 generate -m "$refs/qwen3.gguf" --temp 0 -n 24 "was the"
cp out want
[ "$(tail -c 1 want | wc -l)" = 0 ] || truncate -s -1 want # without the last newline
example generate "$refs/qwen3.gguf" "was the" 24
run 0 ask --json --table "$root/models/home.json" "turn off the kitchen lights" # as in the library: no demo home
cp out want
SHOAL_MODELS=$(pkg-config --variable=modelsdir shoal) example ask "turn off the kitchen lights"
has err "kitchen"
LD_LIBRARY_PATH=$lib ./ask-shared "turn off the kitchen lights" >out 2>err || { fail "the shared library does not find its models"; cat err; }
cmp out want || fail "ask: the models that the library found give another answer"
run 0 flow run "$root/examples/flows/helper.yaml" "what is the weather like in Bern tomorrow"
cp out want
has want "the weather in Bern"
SHOAL_MODELS=$(pkg-config --variable=modelsdir shoal) \
    example flow "$root/examples/flows/helper.yaml" "what is the weather like in Bern tomorrow"
has err "intent     classify  done"
# no server: the library contains only the gateway's configuration
same "network libraries" "$(readelf -d "$lib/libshoal.so" | grep -E 'NEEDED.*(ssl|nghttp2|nats|mosquitto|curl)')" ""
"./generate-static" none.gguf "was the" 24 >out 2>err && fail "a missing model is no error"
has err "cannot open none.gguf"
finish
