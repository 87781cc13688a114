#!/usr/bin/env bash
# shoal ca through the real program: OpenSSL's tools and TLS handshakes check its output, and its
# errors say what to do. Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"

verify() { # ok|bad CERT [BUNDLE CRL]: what openssl says
    local want=$1 got=bad
    checked=$((checked + 1))
    openssl verify -x509_strict -purpose sslclient -CAfile "${3:-ca/bundle.pem}" -crl_check \
        -CRLfile "${4:-ca/crl.pem}" -untrusted "$2" "$2" >verified 2>&1 && got=ok
    [ "$got" = "$want" ] || { fail "openssl verify $2: $got, expected $want"; cat verified; }
}

mode() { stat -c %a "$1"; }

# ---- init ----
run 1 ca list; has err "shoal ca init"
run 0 ca init --json; empty err
same "days of the CA" "$(($(field ca.not_after_s) > $(date +%s) + 3600 * 24 * 3640))" 1
same "mode of the key" "$(mode ca/ca.key)" 600
before=$(cat ca/ca.crt)
run 1 ca init; has err "--force"; empty out
same "not replaced" "$(cat ca/ca.crt)" "$before"
same "a CA" "$(openssl verify -x509_strict -CAfile ca/ca.crt ca/ca.crt)" "ca/ca.crt: OK"

# ---- issue ----
run 2 ca issue node-a --role captain; has err "unknown role 'captain'"
run 1 ca issue node-a; has err "needs a role"
run 1 ca issue Node_A --role node; has err "lower-case"
run 1 ca issue node-a --role node --host "a b"; has err "neither a host name"
run 0 ca issue node-a --role node,gateway --host 127.0.0.1 --host localhost --json
same "roles" "$(field roles[0]) $(field roles[1])" "gateway node"
same "hosts" "$(field hosts[0]) $(field hosts[1])" "127.0.0.1 localhost"
a=ca/members/node-a serial=$(field serial)
same "mode of a member's key" "$(mode $a/key.pem)" 600
verify ok $a/cert.pem
openssl x509 -in $a/cert.pem -noout -subject -ext subjectAltName >text
cp text out; has out "CN = node-a"; has out "URI:shoal:role:node"; has out "IP Address:127.0.0.1"
key=$(cat $a/key.pem)
run 1 ca issue node-a --role node; has err "--force"
same "the key is kept" "$(cat $a/key.pem)" "$key"
run 0 ca issue node-a --force --days 7 --json; same "hosts stay" "$(field hosts[1])" localhost
differ "a new serial number" "$(field serial)" "$serial"
run 0 ca issue front --role gateway
run 0 ca list --json; same "issued" "$(field certificates[0].name) $(field certificates[1].name)" "front node-a"
run 0 ca list; has out "replaced"
run 0 ca show front; has out "state      valid"

# ---- a certificate that expired, made by OpenSSL with our CA's key ----
mkdir old
printf '[ca]\ndefault_ca=x\n[x]\ndatabase=old/index\nnew_certs_dir=old\nserial=old/serial\nprivate_key=ca/ca.key\ncertificate=ca/ca.crt\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' >old/conf
: >old/index; echo 4242 >old/serial
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout old/key -subj /CN=late -out old/req 2>/dev/null
openssl ca -config old/conf -batch -notext -in old/req -out old/late.pem -startdate 20200101000000Z -enddate 20200201000000Z 2>/dev/null
run 1 ca show old/late.pem; has out "state      expired"
has err "certificate of late expired on 2020-02-01 00:00 UTC: run shoal ca issue late"

# ---- a certificate of another CA ----
run 0 ca init --dir other --name Other
run 0 ca issue spy --role admin --dir other
run 1 ca show other/members/spy/cert.pem; has out "state      foreign"; has err "not by this CA"
verify bad other/members/spy/cert.pem

# ---- TLS in both directions ----
port=0 server=
serve() { # FOLDER: openssl's server asks for a certificate of the CA
    rm -f served # or the port of the server before is read, until this one has truncated the file
    openssl s_server -accept 127.0.0.1:0 -tls1_3 -cert $1/cert.pem -key $1/key.pem -cert_chain $1/cert.pem \
        -CAfile $1/ca.pem -CRL $1/crl.pem -crl_check -Verify 3 -verify_return_error -www >served 2>&1 </dev/null &
    server=$!
    port=
    for _ in $(seq 600); do # prints the port that the system assigned
        port=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' served)
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    fail "openssl s_server does not start"
    cat served
}
shake() { # ok|bad CLIENT HOST: a TLS 1.3 handshake of CLIENT's folder with the server
    local want=$1 got=bad
    checked=$((checked + 1))
    # TLS 1.3: the client finishes before the server has verified it, so only a response counts
    printf 'GET / HTTP/1.0\r\n\r\n' | timeout 60 openssl s_client -connect "127.0.0.1:$port" -tls1_3 -cert $2/cert.pem \
        -key $2/key.pem -CAfile $2/ca.pem -verify_return_error -verify_hostname "$3" -ign_eof >shaken 2>&1
    grep -q '200 ok' shaken && got=ok
    kill "$server"
    wait "$server" 2>/dev/null
    [ "$got" = "$want" ] || { fail "handshake of $2: $got, expected $want"; tail -n 5 shaken served; }
}
serve ca/members/node-a; shake ok ca/members/front node-a
serve ca/members/node-a; shake bad ca/members/front node-b
serve ca/members/node-a; shake bad other/members/spy node-a

# ---- rotate: both CAs are trusted until --finish ----
cp -r ca/members/node-a before
run 2 ca rotate --force; has err "--finish"
run 1 ca rotate --finish; has err "no rotation"
run 0 ca rotate --json; differ "the CA before" "$(field previous.serial)" ""
verify ok $a/cert.pem
run 1 ca rotate; has err "in progress"
run 1 ca rotate --finish; has err "front, node-a"
run 0 ca issue front --force; run 0 ca issue node-a --force
checked=$((checked + 1)) # a peer that trusts only the old CA accepts the new certificate too
openssl verify -CAfile before/ca.pem -untrusted $a/cert.pem $a/cert.pem >verified 2>&1 ||
    { fail "the cross certificate"; cat verified; }
verify ok before/cert.pem; verify ok $a/cert.pem
run 0 ca rotate --finish
verify bad before/cert.pem; verify ok $a/cert.pem
same "the old key is gone" "$(ls ca/previous)" ""

# ---- revoke ----
cp ca/crl.pem crl-before
run 1 ca revoke nobody; has err "no valid certificate"
run 0 ca revoke node-a --json; same "revoked" "$(field revoked)" 1
verify bad $a/cert.pem
verify ok $a/cert.pem ca/bundle.pem crl-before
verify ok ca/members/front/cert.pem
same "members have the list" "$(cat ca/members/front/crl.pem)" "$(cat ca/crl.pem)"
run 1 ca show node-a; has err "is revoked"
run 1 ca revoke node-a; has err "no valid certificate"
cp ca/crl.pem keep
echo nonsense >ca/crl.pem; run 1 ca list; has err "crl.pem"
cp keep ca/crl.pem
echo nonsense >ca/ca.key; run 1 ca list; has err "not the private key"
finish
