/**
 * The scripts that run on hosts. A step runs in its own session, holds a lock, and writes a journal on the host before and
 * after its work. So it continues if the connection or Refit ends, never runs twice at once, and the next run can see
 * whether it is done.
 */
import type { Binary } from './manifest.ts';

/** In order. */
export type HostStep = 'stage' | 'kubeadm' | 'kubelet';

export interface StepContext {
  readonly step: HostStep;
  /** Uid of the rollout: journal lines of other rollouts do not count. */
  readonly rollout: string;
  /** With `v`. */
  readonly version: string;
}

/** Seconds to wait for a running step of an earlier run: kubeadm may wait five minutes for each manifest. */
const LOCK_WAIT = 1800;
export const EXIT_BUSY = 75;

/** REFIT_ROOT is for tests: a directory that replaces the host's root. */
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

/** Prints facts as lines `name=value`, from files and binaries only. Changes nothing. */
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
 * If kubeadm is killed between its two renames, a manifest is missing, and the next kubeadm does not restore it. The newest
 * backup is copied under a name with a dot first, which kubelet ignores.
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

/** Restores manifests that a killed kubeadm left out; prints `restored <file>` for each. */
export const REPAIR = detached(`${PRELUDE}${JOURNAL}${RESTORE}`, 5);

/** The script exits at once if the journal says that the step is done. */
export function stepScript(context: StepContext, body: string): string {
  const { rollout, step, version } = context;
  const names = `ROLLOUT=${quoted(rollout)}\nSTEP=${quoted(step)}\nVERSION=${quoted(version)}\n`;
  return detached(`${names}${PRELUDE}${JOURNAL}seen done && exit 0\nnote begun\n${body}\nnote done\n`, LOCK_WAIT);
}

/** Fetches both binaries and checks their versions before anything on the node is replaced. */
export function stageBody(binaries: { readonly kubeadm: Binary; readonly kubelet: Binary }): string {
  return `mkdir -p "$D/staged"
${fetched('kubeadm', binaries.kubeadm)}${fetched('kubelet', binaries.kubelet)}
found=$("$D/staged/kubeadm" version -o short)
[ "$found" = "$VERSION" ] || fail "binaries.kubeadm has version $found, expected $VERSION"
found=$("$D/staged/kubelet" --version)
[ "$found" = "Kubernetes $VERSION" ] || fail "binaries.kubelet has version $found, expected Kubernetes $VERSION"`;
}

function fetched(name: string, source: Binary): string {
  const file = `"$D/staged/${name}"`;
  const get =
    'path' in source
      ? `cp "$R"${quoted(source.path)} ${file}.new || fail "binaries.${name}.path: no file ${source.path} on this host"`
      : `curl -fsSL --retry 3 -o ${file}.new ${quoted(source.url)} || fail "binaries.${name}.url: cannot download ${source.url}"`;
  const check = source.sha256
    ? `echo ${quoted(`${source.sha256.toLowerCase()}  `)}${file}.new | sha256sum -c - >/dev/null 2>&1 || fail "binaries.${name}.sha256 does not match the file"\n`
    : '';
  return `${get}\n${check}chmod 755 ${file}.new\nmv ${file}.new ${file}\n`;
}

/** A rename, so that the binary is never incomplete. */
const installed = (name: string): string =>
  `target=$(readlink -f "$(command -v ${name})")\ncp -p "$D/staged/${name}" "$target.refit"\nmv "$target.refit" "$target"\n`;

export function kubeadmBody(verb: 'apply' | 'node'): string {
  const command = verb === 'apply' ? 'upgrade apply --yes "$VERSION"' : 'upgrade node';
  return `${RESTORE}${installed('kubeadm')}kubeadm ${command}`;
}

export const KUBELET_BODY = `${installed('kubelet')}systemctl daemon-reload\nsystemctl restart kubelet`;

/** Runs in its own session under the host's lock, and prints the last lines of its log. */
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
