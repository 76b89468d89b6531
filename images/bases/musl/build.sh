#!/bin/bash
# build.sh STEP: one step of the musl base, each a layer of Dockerfile. Run in the image of `rootfs.sh musl-builder`.
# All sources are the upstream tarballs of Debian's source packages, which apt checks against its signed index; Debian's
# patches stay out, as they take ensurepip from Python.
set -euo pipefail
arch=$(uname -m)
triple=$arch-linux-musl
export PATH=/opt/musl:$PATH MAKEFLAGS="-s -j$(nproc)"
export CC=gcc CFLAGS=-O2 CPPFLAGS=-I/usr/local/include LDFLAGS=-L/usr/local/lib

# Makes /usr/local musl's alone (glibc's loader forgets it, musl's reads it), and adds the kernel's headers to musl's.
toolchain() {
  chmod 755 /opt/musl/gcc
  ln -s gcc /opt/musl/cc
  rm -f /etc/ld.so.conf.d/libc.conf
  ldconfig
  echo /usr/local/lib >"/etc/ld-musl-$arch.path"
  ln -s /usr/include/{linux,asm-generic} "/usr/include/$arch-linux-gnu/asm" "/usr/include/$triple/"
  apt-get update -q -o APT::Update::Error-Mode=any
}

# Unpacks a source package's tarball and goes there. An index can list a version whose files the mirror has dropped.
enter() {
  local version place=/src/$1
  mkdir -p "$place" "$place.download"
  cd "$place.download"
  for version in $(apt-cache showsrc --only-source "$1" | sed -n 's/^Version: //p' | sort -rVu); do
    apt-get source -qq --download-only "$1=$version" || continue
    tar xf ./*.orig.tar.?z --strip-components=1 -C "$place"
    echo "$1 $version" >>/src/versions
    cd "$place"
    return
  done
  echo "build.sh: the mirror serves no version of the source package $1" >&2
  exit 1
}

zlib() {
  enter zlib
  CFLAGS="-O2 -fPIC" ./configure --prefix=/usr/local
  make
  make install
  rm /usr/local/lib/libz.a
}

libffi() {
  enter libffi
  autoreconf -fi
  ./configure -q --build="$triple" --disable-builddir --disable-static --disable-docs --disable-multi-os-directory
  make
  make install
}

sqlite() {
  enter sqlite3
  ./configure -q --build="$triple" --disable-tcl --disable-readline
  make sqlite3.c
  gcc -O2 -fPIC -shared -Wl,-soname,libsqlite3.so.0 -o /usr/local/lib/libsqlite3.so.0 sqlite3.c
  ln -s libsqlite3.so.0 /usr/local/lib/libsqlite3.so
  cp sqlite3.h /usr/local/include/
}

# The shared libraries only, without what neither pip nor a server's TLS needs: it halves the time.
openssl() {
  enter openssl
  ./Configure "linux-$arch" --prefix=/usr/local --libdir=lib --openssldir=/etc/ssl no-tests no-docs no-apps no-engine \
    no-afalgeng no-legacy no-quic no-cmp no-ts no-srp no-sm2 no-sm3 no-sm4 no-aria no-camellia no-seed no-idea \
    no-whirlpool no-mdc2 no-gost >/dev/null
  make build_generated
  make libcrypto.so libssl.so
  cp -P lib*.so* /usr/local/lib/
  cp -r include/openssl /usr/local/include/
}

python() {
  enter "python$1"
  ./configure -q --build="$triple" --enable-shared --without-static-libpython --with-openssl=/usr/local \
    --with-ensurepip=install --disable-test-modules OPT="-DNDEBUG -O2 -Wall"
  make
  make install
  cd /usr/local/bin
  ln -s python3 python
  ln -s pip3 pip
  ln -s python3-config python-config
  find /usr/local/lib -name '*.so*' -type f -exec strip --strip-unneeded {} +
  strip "/usr/local/bin/python$1"
}

# The image's root: musl's loader (also under the name that musllinux wheels link to), busybox and its links, the
# accounts, Debian's list of certificate authorities, and what was built.
rootfs() {
  local root=/rootfs
  mkdir -p $root/{bin,dev,etc/ssl/certs,home,lib,opt,proc,root,run,sbin,sys,tmp,usr/bin,usr/sbin,var/tmp}
  chmod 1777 $root/tmp $root/var/tmp
  cp "/lib/$triple/libc.so" "$root/lib/ld-musl-$arch.so.1"
  ln -s "ld-musl-$arch.so.1" "$root/lib/libc.musl-$arch.so.1"
  ln -s "/lib/ld-musl-$arch.so.1" $root/usr/bin/ldd
  cp "$(command -v busybox)" $root/bin/busybox
  for applet in $(busybox --list | grep -vxE 'busybox|dpkg|dpkg-deb|rpm|ar|strings'); do
    ln -s busybox "$root/bin/$applet"
  done
  ln -s /bin/busybox $root/usr/bin/env
  printf '%s\n' root:x:0:0:root:/root:/bin/sh nobody:x:65534:65534:nobody:/:/bin/false >$root/etc/passwd
  printf '%s\n' root:x:0: nobody:x:65534: >$root/etc/group
  echo 'hosts: files dns' >$root/etc/nsswitch.conf
  printf 'ID=musl-standin\nPRETTY_NAME="musl stand-in made from Debian sources (not Alpine)"\n' >$root/etc/os-release
  cp /etc/ssl/certs/ca-certificates.crt $root/etc/ssl/certs/
  ln -s certs/ca-certificates.crt $root/etc/ssl/cert.pem
  cp /src/versions $root/etc/musl-standin-versions
  rm -rf /usr/local/{games,etc,man,src,share}
  find /usr/local -name __pycache__ -prune -exec rm -r {} +
  cp -a /usr/local $root/usr/
}

"$@"
