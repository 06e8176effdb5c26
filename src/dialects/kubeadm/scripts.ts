/**
 * Owns the scripts that run on hosts. A step runs in a session of its own, under a lock, and notes itself in a journal on
 * the host before and after its work: so it goes on although the connection or Refit ends, never runs twice at once, and
 * whoever comes next finds out whether it was done.
 */
import type { Binary } from './manifest.ts';

/** The steps that a host takes part in, in order. */
export type HostStep = 'stage' | 'kubeadm' | 'kubelet';

export interface StepContext {
  readonly step: HostStep;
  /** Names the rollout for good: what another one did to the host says nothing about this one. */
  readonly rollout: string;
  /** With `v`. */
  readonly version: string;
}

/** Seconds to wait for a step that an earlier run of Refit has left at work: kubeadm may wait five minutes for each manifest. */
const LOCK_WAIT = 1800;
export const EXIT_BUSY = 75;

/** REFIT_ROOT is for tests: a directory that stands for the whole file system of a host. */
const PRELUDE = `set -eu
R=\${REFIT_ROOT:-}
D=$R/var/lib/refit
MANIFESTS=$R/etc/kubernetes/manifests
BACKUPS=$R/etc/kubernetes/tmp
`;

const JOURNAL = `J=$D/kubeadm.journal
seen() { [ -e "$J" ] && grep -qxF "$ROLLOUT $STEP $1" "$J"; }
note() {
  { [ ! -e "$J" ] || cat "$J"; echo "$ROLLOUT $STEP $1"; } >"$J.new"
  sync "$J.new"
  mv "$J.new" "$J"
}
fail() { echo "$*"; exit 1; }
`;

/** Facts as lines \`name=value\`; asks nothing but files and the binaries themselves, and changes nothing. */
export const PROBE = `${PRELUDE}
echo "kubeadm=$(kubeadm version -o short 2>/dev/null || true)"
echo "kubelet=$(kubelet --version 2>/dev/null | sed 's/^Kubernetes //' || true)"
echo "kernel=$(uname -r)"
echo "cgroup=$(stat -fc %T "$R/sys/fs/cgroup" 2>/dev/null || true)"
echo "containerd=$(containerd --version 2>/dev/null || true)"
for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  file=$MANIFESTS/$name.yaml
  [ ! -e "$file" ] || echo "image.$name=$(sed -n 's/^ *image: *//p' "$file" | head -n 1)"
done
for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  [ -e "$MANIFESTS/$name.yaml" ] || ! ls "$BACKUPS"/kubeadm-backup-manifests-*/$name.yaml >/dev/null 2>&1 || echo "missing=$name"
done
[ ! -e "$D/kubeadm.journal" ] || sed 's/^/journal=/' "$D/kubeadm.journal"
`;

/**
 * kubeadm that is cut off between its two renames leaves a manifest out, and the next kubeadm does not put it back. The
 * newest backup does; kubelet overlooks files that begin with a dot.
 */
const RESTORE = `
for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  [ ! -e "$MANIFESTS/$name.yaml" ] || continue
  backup=$(ls -1dt "$BACKUPS"/kubeadm-backup-manifests-*/$name.yaml 2>/dev/null | head -n 1)
  [ -n "$backup" ] || continue
  cp -p "$backup" "$MANIFESTS/.$name.refit"
  mv "$MANIFESTS/.$name.refit" "$MANIFESTS/$name.yaml"
  echo "restored $name.yaml"
done
`;

/** Puts back manifests that a kubeadm left out which does not run any more; answers \`restored <file>\` for each. */
export const REPAIR = detached(`${PRELUDE}${JOURNAL}${RESTORE}`, 5);

/** @returns a script that resolves at once where the journal says that the step is done */
export function stepScript(context: StepContext, body: string): string {
  const { rollout, step, version } = context;
  const names = `ROLLOUT=${quoted(rollout)}\nSTEP=${quoted(step)}\nVERSION=${quoted(version)}\n`;
  return detached(`${names}${PRELUDE}${JOURNAL}seen done && exit 0\nnote begun\n${body}\nnote done\n`, LOCK_WAIT);
}

/** The binaries come first and are tried out, while nothing of the node is touched. */
export function stageBody(binaries: { readonly kubeadm: Binary; readonly kubelet: Binary }): string {
  return `mkdir -p "$D/staged"
${fetched('kubeadm', binaries.kubeadm)}${fetched('kubelet', binaries.kubelet)}
found=$("$D/staged/kubeadm" version -o short)
[ "$found" = "$VERSION" ] || fail "the staged kubeadm is $found, expected $VERSION"
found=$("$D/staged/kubelet" --version)
[ "$found" = "Kubernetes $VERSION" ] || fail "the staged kubelet is $found, expected Kubernetes $VERSION"`;
}

function fetched(name: string, source: Binary): string {
  const file = `"$D/staged/${name}"`;
  const get =
    'path' in source
      ? `cp "$R"${quoted(source.path)} ${file}.new || fail "no ${name} at ${source.path}"`
      : `curl -fsSL --retry 3 -o ${file}.new ${quoted(source.url)} || fail "cannot download ${source.url}"`;
  const check = source.sha256
    ? `echo ${quoted(`${source.sha256.toLowerCase()}  `)}${file}.new | sha256sum -c - >/dev/null 2>&1 || fail "${name} has another sha256"\n`
    : '';
  return `${get}\n${check}chmod 755 ${file}.new\nmv ${file}.new ${file}\n`;
}

/** One rename each, so that there is always a whole binary. */
const installed = (name: string): string =>
  `target=$(readlink -f "$(command -v ${name})")\ncp -p "$D/staged/${name}" "$target.refit"\nmv "$target.refit" "$target"\n`;

export function kubeadmBody(verb: 'apply' | 'node'): string {
  const command = verb === 'apply' ? 'upgrade apply --yes "$VERSION"' : 'upgrade node';
  return `${RESTORE}${installed('kubeadm')}kubeadm ${command}`;
}

export const KUBELET_BODY = `${installed('kubelet')}systemctl daemon-reload\nsystemctl restart kubelet`;

/** In a session of its own, under the host's lock; the last lines of its log are the answer. */
function detached(body: string, waitSeconds: number): string {
  return `set -u
D=\${REFIT_ROOT:-}/var/lib/refit
umask 077
mkdir -p "$D"
BODY=${quoted(body)}
LOG=$(mktemp "$D/log.XXXXXX")
setsid -w flock -o -E ${EXIT_BUSY} -w ${waitSeconds} "$D/kubeadm.lock" sh -c "$BODY" </dev/null >"$LOG" 2>&1
code=$?
tail -n 5 "$LOG"
mv "$LOG" "$D/last.log"
exit $code
`;
}

/** As one word of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
