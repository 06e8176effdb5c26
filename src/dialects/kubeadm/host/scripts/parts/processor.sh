# ARCH is the processor of this host as in the names of Kubernetes releases. PROCESSOR is the same processor as the
# command `file` names it. `processor_of FILE` prints the processor of a program. `is_foreign PROCESSOR` succeeds if
# this host cannot run programs for that processor.

ARCH=$(uname -m)
case $ARCH in
x86_64) ARCH=amd64 PROCESSOR=x86-64 ;;
aarch64) ARCH=arm64 PROCESSOR=aarch64 ;;
arm*) ARCH=arm PROCESSOR=arm ;;
i?86) ARCH=386 PROCESSOR=x86 ;;
*) PROCESSOR=$ARCH ;;
esac
# `processor_of` reads the magic number, the byte order and the machine from the header of the file. It prints nothing
# for a script or an unknown machine.
processor_of() {
  case $(od -An -tx1 -N 20 "$1" | tr -d ' \n' | cut -c 1-8,11-12,37-40) in
  7f454c46013e00) echo x86-64 ;;
  7f454c4601b700) echo aarch64 ;;
  7f454c46012800) echo arm ;;
  7f454c46010300) echo x86 ;;
  7f454c46011500) echo ppc64le ;;
  7f454c4601f300) echo riscv64 ;;
  7f454c46020016) echo s390x ;;
  esac
}
# A 64-bit kernel also runs programs for the 32-bit processor of the same family.
is_foreign() {
  case $PROCESSOR/$1 in "$1/$1" | */ | x86-64/x86 | aarch64/arm) return 1 ;; esac
}
