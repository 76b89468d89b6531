#!/bin/sh
# with-host.sh COMMAND…: runs a command of a build stage with the host's CA bundle, where images/host/ca.crt has one.
# pip, OpenSSL's default store, requests and cargo each read a variable of their own.
set -eu
ca=/build/host/ca.crt
if [ -s "$ca" ]; then
  export PIP_CERT="$ca" SSL_CERT_FILE="$ca" REQUESTS_CA_BUNDLE="$ca" CARGO_HTTP_CAINFO="$ca"
fi
exec "$@"
