#!/bin/bash
# rootfs.sh slim|debian|musl-builder [SUITE]  >rootfs.tar
# Writes the root file system of a stand-in base image to stdout, for a machine that cannot pull one. Progress goes to
# stderr. SUITE: trixie (Python 3.13, the default) or forky (Python 3.14).
#   slim          Debian's Python with venv, and no compiler
#   debian        slim with a compiler and headers
#   musl-builder  what musl/Dockerfile is built in; no base of its own
# Needs Debian or a derivative, root, and a Debian mirror. Exit code 3: this machine lacks something, in one line.
set -euo pipefail

lacking() { echo "rootfs.sh: cannot build a stand-in base here: $*" >&2; exit 3; }

case ${1:-} in
  slim) packages=python3,python3-venv,ca-certificates ;;
  debian) packages=python3,python3-venv,ca-certificates,build-essential,python3-dev,pkg-config ;;
  musl-builder)
    packages=ca-certificates,gcc,libc6-dev,linux-libc-dev,make,perl,musl-tools,busybox-static # compiler and C library
    packages+=,dpkg-dev,xz-utils,autoconf,automake,libtool,libltdl-dev,tcl ;;                   # what the sources call
  *) echo "usage: rootfs.sh slim|debian|musl-builder [trixie|forky] >rootfs.tar" >&2; exit 2 ;;
esac
suite=${2:-trixie}

command -v apt-get >/dev/null || lacking "needs Debian or a derivative of it (there is no apt-get)"
[ "$(id -u)" = 0 ] || lacking "needs root (mmdebstrap makes device files and owners)"
[ ! -t 1 ] || lacking "standard output is a terminal: send it to a file or to docker import"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An mmdebstrap of the distribution, unpacked beside us where the machine has none: nothing is installed here.
mmdebstrap=$(command -v mmdebstrap || true)
if [ -z "$mmdebstrap" ]; then
  echo "rootfs.sh: fetching mmdebstrap for this build only" >&2
  # _apt, apt's own user for downloads, cannot write to a folder of root's.
  (cd "$work" && apt-get download -o APT::Sandbox::User=root mmdebstrap >&2) ||
    lacking "needs mmdebstrap, and apt-get download found none (apt-get update brings fresh lists)"
  dpkg -x "$work"/mmdebstrap_*.deb "$work/unpacked"
  mmdebstrap=$work/unpacked/usr/bin/mmdebstrap
  PATH=$work/unpacked/usr/bin:$PATH # it calls the mmtarfilter beside it by name
fi

# The mirrors that apt uses here for Debian's own archive: no other is named here.
mirror() { apt-get indextargets --format '$(REPO_URI)' "Label: $1" 'Created-By: Packages' | head -n 1; }
main=${DEBIAN_MIRROR:-$(mirror Debian)}
security=${DEBIAN_SECURITY_MIRROR:-$(mirror Debian-Security)}
[ -n "$main" ] || lacking "apt knows no mirror of Debian here (run apt-get update, or set DEBIAN_MIRROR)"
kinds=deb
[ "$1" != musl-builder ] || kinds='deb deb-src'
sources() {
  local kind
  for kind in $kinds; do
    echo "$kind $main $suite main"
    [ "$suite" = forky ] || [ -z "$security" ] || echo "$kind $security $suite-security main" # testing gets its fixes through main
  done
}

# A derivative may trust other keys than Debian's.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || lacking "needs Debian's keys in $keyring (package debian-archive-keyring)"

# Testing's index expires after a week, and a mirror may lag behind: its signature is checked all the same.
options=()
[ "$suite" != forky ] || options=(--aptopt='Acquire::Check-Valid-Until "false"')

echo "rootfs.sh: $1 of Debian $suite" >&2
sources | "$mmdebstrap" --variant=minbase --keyring="$keyring" --keyring=/etc/apt/trusted.gpg.d \
  --include="$packages" "${options[@]}" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  "$suite" - -
