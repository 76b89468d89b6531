#!/bin/sh
# system.sh PACKAGE…: installs system packages with the package manager that the image has.
# Exit code: 0 done, or nothing was asked for; 3 there is none; otherwise that of the package manager.
set -eu
[ $# -gt 0 ] || exit 0
if command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  # Without Error-Mode an index that cannot be fetched passes for a package that does not exist.
  apt-get update -q -o APT::Update::Error-Mode=any
  apt-get install -qy --no-install-recommends "$@"
  rm -rf /var/lib/apt/lists/*
elif command -v apk >/dev/null; then
  apk add --no-cache "$@"
else
  echo "no package manager (apt-get, apk) in this image; asked for: $*" >&2
  exit 3
fi
