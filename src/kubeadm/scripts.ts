/** The scripts on hosts: a step has its own session, lock and journal, so it outlives its caller and never runs twice. */
import { RefitError } from '../util/errors.ts';
import { printableUrl } from '../util/printable-url.ts';
import { parseVersion } from '../util/version.ts';
import type { Binary, Host, KubeadmOptions, Upgrade } from './host.ts';
import { PACKAGES } from './packages.ts';

export type HostStep = 'stage' | 'kubeadm' | 'kubelet';

export interface StepContext {
  readonly step: HostStep;
  /** Uid of the rollout: journal lines of other rollouts do not count. */
  readonly rollout: string;
  /** With `v`. */
  readonly version: string;
}

export interface StepBody {
  readonly before?: string;
  readonly body: string;
  readonly after?: string;
}

/** In /var/lib/kubelet: what kubeadm writes. */
const KUBELET_FILES = 'config.yaml kubeadm-flags.env instance-config.yaml';

/** Seconds to wait for a running step of an earlier run: kubeadm may wait five minutes for each manifest. */
export const LOCK_WAIT = 1800;
export const EXIT_BUSY = 75;

/** REFIT_ROOT is for tests: a directory that replaces the host's root. */
export const PRELUDE = `set -eu
R=\${REFIT_ROOT:-}
D=$R/var/lib/refit
MANIFESTS=$R/etc/kubernetes/manifests
BACKUPS=$R/etc/kubernetes/tmp
fail() { printf '%s\\n' "$*"; exit 1; }
# flag NAME MANIFEST: of a static pod.
flag() { sed -n "/^ *- --$1=/{s///p;q;}" "$2" 2>/dev/null || true; }
${PACKAGES}# Never incomplete; until then under a name with a dot first, which kubelet ignores.
place() { cp -p "$1" "\${2%/*}/.\${2##*/}.refit" && mv "\${2%/*}/.\${2##*/}.refit" "$2"; }
`;

const JOURNAL = `J=$D/kubeadm.journal
seen() { [ -e "$J" ] && grep -qxF "$ROLLOUT $STEP $1" "$J"; }
note() {
  { [ ! -e "$J" ] || cat "$J"; echo "$ROLLOUT $STEP $1"; } >"$J.new"
  sync "$J.new"
  mv "$J.new" "$J"
}
`;

/**
 * kubeadm keeps its backups for ever, also on a host that became a worker, so a backup alone proves nothing. Before each run
 * the host writes down its manifests, with their hashes, and the backups. A run that was cut off (`is_ours`) leaves one new
 * backup and lacks one manifest; the others are as they were, or have its version. `of_run NAME` prints a backup with the
 * hash of the manifest then; `by_hand NAME` prints `hand PATH` for one of a kubeadm that a person ran, or `refused REASON`.
 */
const BACKUPS = `RUN=$D/kubeadm.run
COMPONENTS='etcd kube-apiserver kube-controller-manager kube-scheduler'
list() { ls -1dt "$BACKUPS"/kubeadm-backup-manifests-*/"$1.yaml" 2>/dev/null || true; }
tag() { sed -n '/^ *image: */{s///;s/@.*//;s/.*://;p;q;}' "$1"; }
is_open() {
  last=$(grep ' kubeadm ' "$D/kubeadm.journal" 2>/dev/null | tail -n 1)
  [ -e "$RUN" ] && [ "$last" = "$(head -n 1 "$RUN") kubeadm begun" ]
}
is_controller() { [ -e "$R/etc/kubernetes/controller-manager.conf" ]; }
is_recorded() { grep -qxF "manifest $1.yaml $(sha256sum <"$2")" "$RUN"; }
new_backups() {
  for folder in "$BACKUPS"/kubeadm-backup-manifests-*; do
    [ ! -d "$folder" ] || grep -qxF "backup \${folder##*/}" "$RUN" || echo "$folder"
  done
}
is_ours() {
  is_controller && is_open && [ "$(new_backups | wc -l)" -eq 1 ] || return 1
  lost=0
  for other in $COMPONENTS; do
    file=$MANIFESTS/$other.yaml
    if [ ! -e "$file" ]; then
      ! grep -q "^manifest $other.yaml " "$RUN" || lost=$((lost + 1))
    elif [ "$other" != etcd ]; then
      is_recorded "$other" "$file" || grep -qxF "version $(tag "$file")" "$RUN" || return 1
    fi
  done
  [ "$lost" -eq 1 ]
}
of_run() {
  is_ours || return 0
  # kubeadm removes what it did not put in place only when it ends well: then somebody else has removed the manifest.
  [ -n "$(find "$BACKUPS" -path "*/kubeadm-upgraded-manifests*/$1.yaml" -newer "$RUN")" ] || return 0
  file=$(new_backups)/$1.yaml
  [ ! -e "$file" ] || ! is_recorded "$1" "$file" || echo "$file"
}
by_hand() {
  file=$(list "$1" | head -n 1)
  [ -n "$file" ] || return 0
  is_controller || { echo "refused /etc/kubernetes/controller-manager.conf is missing: this is no control-plane host"; return 0; }
  [ "$1" != etcd ] || { echo "refused a backup of etcd is never restored without the journal of its run"; return 0; }
  mine=$(tag "$file")
  for other in kube-apiserver kube-controller-manager kube-scheduler; do
    [ "$other" != "$1" ] || continue
    [ -e "$MANIFESTS/$other.yaml" ] || { echo "refused $other.yaml is missing too"; return 0; }
    running=$(tag "$MANIFESTS/$other.yaml")
    [ "$(printf '%s\\n' "$mine" "$running" | sort -V | head -n 1)" = "$running" ] && continue
    echo "refused the backup has $mine, but $other runs $running"
    return 0
  done
  echo "hand $file"
}
`;

/** Prints facts as lines `name=value`; `hard` and `warn` have sentences. Changes nothing. `now`: milliseconds, here. */
export function probeScript(upgrade: Upgrade, host: Host, now: number): string {
  const { role } = host;
  const { patches, config } = optionsFor(upgrade, host);
  const { binaries } = upgrade;
  const given = [patches, config].flatMap((path) => path ?? []).map(quoted);
  const paths = given.map(
    (path) => `SOURCE=${path}\n[ -e "$SOURCE" ] || echo "kubeadm: no file $SOURCE on this host"\n`,
  );
  const patched = given.length === 0 ? '' : `grep -qs '^ *failCgroupV1: *false' "$R/var/lib/kubelet/config.yaml" || `;
  return `VERSION=${quoted(upgrade.version)}
${PRELUDE}${WRONG}
{ case $(systemctl is-active kubelet 2>/dev/null) in
  inactive | failed) echo "the kubelet does not run: see journalctl -u kubelet" ;;
  esac
  for name in kubeadm kubelet; do
    command -v "$name" >/dev/null || echo "no $name in PATH ($PATH): install it, or set path in the manifest"
  done
${each(binaries, probed)}${paths.join('')}${ROOM}
} | sed '/^warn=/!s/^/hard=/'
df -kP "$R/var/lib/containerd" 2>/dev/null | awk -v need=${IMAGES[role]} 'NR == 2 && $4 < need {
  printf "warn=%s has %d MiB free, new images may need %d MiB\\n", $6, $4 / 1024, need / 1024 }'
off=$(($(date +%s) - ${Math.round(now / 1000)}))
[ "$off" -gt -30 ] && [ "$off" -lt 90 ] || echo "warn=its clock and the one here are $off s apart"
if [ -e "$D/kubeadm.lock" ] && ! flock -n "$D/kubeadm.lock" true; then
  # Without processes: who ends one of them lets a second kubeadm run beside the first.
  echo 'busy=a step of Refit, log /run/refit.*'
  echo 'warn=a step of an earlier run is at work: this run waits for its end'
else
  for process in $(pgrep -x kubeadm 2>/dev/null); do echo "busy=kubeadm, process $process"; done
fi
${LISTENS}# Where it listens, nobody has to wait for it: then it is the caller who does not reach it.
is_listening "$MANIFESTS/kube-apiserver.yaml" ||
  [ -z "$(find "$MANIFESTS" -name kube-apiserver.yaml -cmin -5 2>/dev/null)" ] || echo 'busy=an API server that starts'
echo "kernel=$(uname -r)"
grep -qs 'fail-cgroupv1=false' "$R/var/lib/kubelet/kubeadm-flags.env" "$R/etc/default/kubelet" "$R/etc/sysconfig/kubelet" ||
  ${patched}echo "cgroup=$(stat -fc %T "$R/sys/fs/cgroup" 2>/dev/null || true)"
echo "containerd=$(containerd --version 2>/dev/null || true)"
${FACTS}${role === 'controlPlane' ? `${BACKUPS}${MISSING}` : ''}`;
}

export const LISTENS = `is_listening() {
  port=$(flag secure-port "$1")
  cat "$R/proc/net/tcp" "$R/proc/net/tcp6" 2>/dev/null |
    awk -v port="$(printf ':%04X$' "\${port:-6443}")" '$4 == "0A" && $2 ~ port { n++ } END { exit !n }'
}
`;

/** Versions, the port of the API server, and kubeadm's certificates without their keys. */
export const FACTS = `echo "apiPort=$(flag secure-port "$MANIFESTS/kube-apiserver.yaml")"
echo "kubeadm=$(kubeadm version -o short 2>/dev/null || true)"
echo "kubelet=$(kubelet --version 2>/dev/null | sed 's/^Kubernetes //' || true)"
for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
  file=$MANIFESTS/$name.yaml
  [ ! -e "$file" ] || echo "image.$name=$(sed -n '/^ *image: */{s///;p;q;}' "$file")"
done
first() { awk '/BEGIN CERTIFICATE/ { on = 1; next } /END CERTIFICATE/ { exit } on { printf "%s", $0 }'; }
pki=$(flag client-ca-file "$MANIFESTS/kube-apiserver.yaml")
pki=$(dirname "\${pki:-/etc/kubernetes/pki/ca.crt}")
for name in apiserver apiserver-kubelet-client apiserver-etcd-client front-proxy-client ca front-proxy-ca \\
  etcd/server etcd/peer etcd/healthcheck-client etcd/ca; do
  file=$R$pki/$name.crt
  [ ! -e "$file" ] || echo "certificate=$(first <"$file") \${file#"$R"}"
done
file=$R/var/lib/kubelet/pki/kubelet-client-current.pem
[ ! -e "$file" ] || echo "certificate=$(first <"$file") \${file#"$R"}"
for name in admin super-admin controller-manager scheduler; do
  file=$R/etc/kubernetes/$name.conf
  [ -e "$file" ] || continue
  data=$(sed -n '/^ *client-certificate-data: */{s///;p;q;}' "$file")
  [ -z "$data" ] || echo "certificate=$(echo "$data" | base64 -d | first) \${file#"$R"}"
done
`;

/** KiB that new images may need, unless they are there already. */
const IMAGES = { controlPlane: 1_048_576, worker: 262_144 };

/** For two staged binaries and those before, their swap, and the copy that kubeadm makes of etcd's data; paths may share a file system. */
const ROOM = `  need() { [ ! -d "$2" ] || df -kP "$2" | awk -v need="$1" 'NR == 2 { print $6, $4, need }'; }
  { need 262144 "$R/var/lib"; need 131072 "$R/usr/bin"
    need "$(du -sk "$R/var/lib/etcd" 2>/dev/null | cut -f 1)" "$R/etc/kubernetes"; } |
    awk '{ free[$1] = $2; sum[$1] += $3 } END { for (at in sum) if (free[at] < sum[at])
      printf "%s has %d MiB free, the upgrade needs %d MiB\\n", at, free[at] / 1024, sum[at] / 1024 }'
  case $(findmnt -no OPTIONS -T "$R/var/lib") in
  *noexec*) echo "/var/lib is mounted with noexec: staged binaries cannot run there" ;;
  esac`;

/** Prints `missing=NAME run PATH`, `missing=NAME hand PATH` or `missing=NAME refused REASON`. */
const MISSING = `for name in $COMPONENTS; do
  [ ! -e "$MANIFESTS/$name.yaml" ] || continue
  file=$(of_run "$name")
  found=\${file:+run $file}
  [ -n "$found" ] || found=$(by_hand "$name")
  [ -z "$found" ] || echo "missing=$name $found"
done
`;

/** A manifest that a killed kubeadm left out: the next one does not restore it. A name with a dot first is ignored. */
const RESTORE = `${BACKUPS}
for name in $COMPONENTS; do
  [ ! -e "$MANIFESTS/$name.yaml" ] || continue
  file=$(of_run "$name")
  if [ -z "$file" ] && [ -n "\${BY_HAND:-}" ]; then
    found=$(by_hand "$name")
    [ "$found" != "hand $BY_HAND" ] || file=$BY_HAND
  fi
  [ -n "$file" ] || continue
  place "$file" "$MANIFESTS/$name.yaml"
  echo "restored $name.yaml"
done
`;

/** Before `note begun`, so that this record belongs to the run that the journal names last. */
const RECORD_RUN = `{
  echo "$ROLLOUT"
  echo "version $VERSION"
  for file in "$MANIFESTS"/*.yaml; do echo "manifest \${file##*/} $(sha256sum <"$file")"; done
  for folder in "$BACKUPS"/kubeadm-backup-manifests-*; do echo "backup \${folder##*/}"; done
} >"$RUN.new"
sync "$RUN.new"
mv "$RUN.new" "$RUN"
`;

/** Restores manifests that a killed kubeadm left out. `byHand`: the backup of another kubeadm, which a person agreed to. */
export function repairScript(byHand?: string): string {
  const agreed = byHand === undefined ? '' : `BY_HAND=${quoted(byHand)}\n`;
  return detached(`${agreed}${PRELUDE}${RESTORE}`, 5);
}

/** The script exits at once if the journal says that the step is done; `before` runs before the step counts as begun. */
export function stepScript(context: StepContext, { before = '', body, after = '' }: StepBody): string {
  const { rollout, step, version } = context;
  const names = `ROLLOUT=${quoted(rollout)}\nSTEP=${quoted(step)}\nVERSION=${quoted(version)}\n`;
  return detached(
    `${names}${PRELUDE}${JOURNAL}seen done && exit 0\n${before}note begun\n${body}\nnote done\n${after}\n`,
    LOCK_WAIT,
  );
}

/** `wrong NAME FILE SHA256` says what is wrong with a binary. */
const WRONG = `wrong() {
  [ -z "$3" ] || [ "$(sha256sum <"$2")" = "$3  -" ] || { echo "binaries.$1.sha256 does not match the file"; return; }
  case $1 in
  kubelet) found=$("$2" --version 2>&1 | sed 's/^Kubernetes //') ;;
  kubectl) found=$("$2" version --client 2>&1 | sed -n 's/^Client Version: //p') ;;
  *) found=$("$2" version -o short 2>&1 || true) ;;
  esac
  [ "$found" = "$VERSION" ] || echo "binaries.$1 has version $found, expected $VERSION"
}
`;

/** Fetches the binaries and checks their versions before anything on the node is replaced. */
export function stageBody(binaries: Upgrade['binaries']): StepBody {
  return { body: `mkdir -p "$D/staged"\n${WRONG}${each(binaries, fetched)}` };
}

function each(binaries: Upgrade['binaries'], write: (name: string, source: Binary) => string): string {
  return Object.entries(binaries)
    .map(([name, source]) => write(name, source))
    .join('');
}

/** Stages the binaries, and lets the staged kubeadm check the host: workers have no credentials for `upgrade apply`. */
export function prepareScript(upgrade: Upgrade, host: Host, leads: boolean): string {
  const { config, ignorePreflightErrors: ignored = [] } = optionsFor(upgrade, host);
  const isController = host.role === 'controlPlane';
  // Two checks that begin in the same millisecond give their Job the same name: that of the leader counts.
  const isAlone = leads || !isController || config !== undefined || ignored.some((name) => /^all$/i.test(name));
  const flags = flagsOf({ config, ignorePreflightErrors: isAlone ? ignored : [...ignored, 'CreateJob'] });
  const command = isController ? 'apply phase preflight "$VERSION" --yes' : 'node phase preflight';
  const has = !isController || hasPhases(upgrade.version);
  const preflight = has ? `"$D/staged/kubeadm" upgrade ${command}${flags}\n` : '';
  const names = `VERSION=${quoted(upgrade.version)}\n`;
  return detached(`${names}${PRELUDE}${JOURNAL}${stageBody(upgrade.binaries).body}${preflight}`, LOCK_WAIT);
}

/** Prints what kubeadm would change in the static pod manifests; nothing if no kubeadm of the target is on the host. Changes nothing. */
export function diffScript({ version, binaries }: Upgrade): string {
  return `VERSION=${quoted(version)}
${PRELUDE}${WRONG}${assigned(binaries.kubeadm)}for file in "$D/staged/kubeadm" "$R$SOURCE"; do
  [ -f "$file" ] && [ -x "$file" ] && [ -z "$(wrong kubeadm "$file" "$SHA256")" ] || continue
  exec "$file" upgrade diff "$VERSION" 2>&1
done
`;
}

export function hasPhases(version: string): boolean {
  return (parseVersion(version)?.minor ?? 0) >= 31;
}

/** What the stage step would stumble over. */
function probed(name: string, source: Binary): string {
  const staged = `"$D/staged/${name}"`;
  const look =
    'path' in source
      ? `if [ ! -f "$R$SOURCE" ]; then echo "binaries.${name}.path: no file $SOURCE on this host"
elif [ -x "$R$SOURCE" ]; then wrong ${name} "$R$SOURCE" "$SHA256"; fi`
      : `tried=$(curl -fsSL -r 0-0 --max-time 20 -o /dev/null -- "$SOURCE" 2>&1) || echo "binaries.${name}.url: cannot download $SHOWN: $tried"`;
  return `${assigned(source)}find_package ${name}
if [ "\${FILE##*/}" = snap ]; then
  echo "${name} is a snap: run snap remove ${name} and install a package or a file of that name${name === 'kubectl' ? ', or leave it out of binaries' : ''}"
elif [ -n "$FILE" ] && [ ! -w "\${FILE%/*}" ]; then
  echo "${name} lies in \${FILE%/*}, which is read-only: move it to a folder that is not, also in what starts it"
elif [ "\${PACKAGE:-${name}}" != ${name} ]; then
  echo "${name} belongs to package $PACKAGE: install package ${name}, or a file of its own, first"
elif [ -n "$PACKAGE" ] && ! command -v "$MANAGER" >/dev/null; then
  echo "${name} belongs to an RPM package, but neither dnf 4 nor zypper is there to replace it: install a file of its own"
elif [ -n "$PACKAGE" ]; then
  echo "warn=${name} belongs to a package: $MANAGER replaces it, not binaries.${name}"
  is_known || echo "$MANAGER knows no $PACKAGE \${VERSION#v}: set up the repository of that minor version, then run $REFRESH"
elif ${isNotYet(staged, name)}; then\n${look}\nfi\n`;
}

/** Seconds: a mirror that stalls must not hold the host's lock. */
const CURL_OPTIONS = '-fsSL --retry 3 --connect-timeout 30 --speed-limit 1 --speed-time 60 --max-time 21600';

/** Values of the manifest are assigned here and then only used as `"$SOURCE"`, `"$SHOWN"` and `"$SHA256"`. */
function assigned(source: Binary): string {
  const from = 'path' in source ? source.path : source.url;
  return `SOURCE=${quoted(from)}\nSHOWN=${quoted(printableUrl(from))}\nSHA256=${quoted(source.sha256?.toLowerCase() ?? '')}\n`;
}

function fetched(name: string, source: Binary): string {
  const file = `"$D/staged/${name}"`;
  const get =
    'path' in source
      ? `cp "$R$SOURCE" ${file}.new || fail "binaries.${name}.path: no file $SOURCE on this host"`
      : `curl ${CURL_OPTIONS} -o ${file}.new -- "$SOURCE" || fail "binaries.${name}.url: cannot download $SHOWN"`;
  const check = `chmod 755 ${file}.new\nfound=$(wrong ${name} ${file}.new "$SHA256")\n[ -z "$found" ] || fail "$found"`;
  return `${assigned(source)}find_package ${name}
if ${isNotYet(file, name)} || { [ -n "$PACKAGE" ] && [ ! -d ${file}.packages ]; }; then
rm -rf ${file}.packages
if [ -n "$PACKAGE" ]; then
  { cd "$D/staged" && fetch_package ${name}; } || fail "$MANAGER cannot fetch $PACKAGE \${VERSION#v}"
else
  ${get}
fi
${check}\nmv ${file}.new ${file}\nfi\n`;
}

/** A staged copy is good enough if a hash proves it. */
const isNotYet = (staged: string, name: string): string =>
  `[ -z "$SHA256" ] || [ ! -x ${staged} ] || [ -n "$(wrong ${name} ${staged} "$SHA256")" ]`;

/** `keep NAME FILE` keeps a file as the rollout found it, once; the kubelet's configuration is kept before kubeadm writes it. */
const KEEP = `is_kept() { [ "$(cat "$D/previous/.rollout" 2>/dev/null)" = "$ROLLOUT" ]; }
keep() {
  [ ! -e "$D/previous/$1" ] && [ -e "$2" ] || return 0
  cp -p "$2" "$D/previous/.new"
  sync "$D/previous/.new"
  mv "$D/previous/.new" "$D/previous/$1"
}
`;

const KEEP_CONFIGURATION = `${KEEP}if ! is_kept; then
  # A kubelet of the target, or one that does not even run, is no way back: it came with an earlier run.
  found=$(kubelet --version 2>/dev/null | sed 's/^Kubernetes //')
  [ -z "$found" ] || [ "$found" = "$VERSION" ] || rm -rf "$D/previous"
  mkdir -p "$D/previous"
  printf '%s' "$ROLLOUT" >"$D/previous/.rollout"
fi
for file in ${KUBELET_FILES}; do keep "$file" "$R/var/lib/kubelet/$file"; done
`;

/** A rename, so that the binary is never incomplete, or a package, whose hold stays. */
const installed = (name: string, from = 'staged'): string => `if [ -d "$D/${from}/${name}.packages" ]; then
  install_package ${name}
else
  target=$(file_of ${name})
  cp -p "$D/${from}/${name}" "$target.refit"
  mv "$target.refit" "$target"
fi
`;

const replaced = (name: string): string => `keep ${name} "$(file_of ${name})"\n${installed(name)}`;

/** Puts kubeadm, kubelet and configuration back as the rollout found them. Static pods and etcd stay: etcd never goes back. */
export function rollBackScript(rollout: string): string {
  return detached(
    `ROLLOUT=${quoted(rollout)}
${PRELUDE}${JOURNAL}${KEEP}# Nothing was replaced then.
is_kept && [ -e "$D/previous/kubelet" ] || exit 0
grep -vF "$ROLLOUT " "$J" >"$J.new" || [ $? -eq 1 ]
sync "$J.new"
mv "$J.new" "$J"
for file in ${KUBELET_FILES}; do
  [ ! -e "$D/previous/$file" ] || place "$D/previous/$file" "$R/var/lib/kubelet/$file"
done
if [ -e "$D/previous/kubeadm" ]; then
${installed('kubeadm', 'previous')}fi
${installed('kubelet', 'previous')}systemctl daemon-reload
systemctl restart kubelet
kubelet --version`,
    LOCK_WAIT,
  );
}

export function optionsFor(upgrade: Pick<Upgrade, 'kubeadm'>, host: Host): KubeadmOptions {
  return { ...upgrade.kubeadm, ...host.kubeadm };
}

function flagsOf(options: { readonly [Name in keyof KubeadmOptions]: KubeadmOptions[Name] | undefined }): string {
  const given = Object.entries(options).flatMap(([name, value]) => {
    const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return value === undefined || String(value) === '' ? [] : ` ${quoted(`--${flag}=${String(value)}`)}`;
  });
  return given.join('');
}

/** Each run of kubeadm leaves a whole copy of etcd's data; the newest is kept. */
const REMOVE_COPIES = `ls -1dt "$BACKUPS"/kubeadm-backup-etcd-* 2>/dev/null | tail -n +2 |
  while IFS= read -r copy; do rm -rf -- "$copy"; done`;

export function kubeadmBody(verb: 'apply' | 'node', role: Host['role'], options: KubeadmOptions): StepBody {
  const command = `${verb === 'apply' ? 'upgrade apply --yes "$VERSION"' : 'upgrade node'}${flagsOf(options)}`;
  // Ended by a signal, kubeadm may leave a manifest out; after an error of its own it has put them all back.
  const ended = '{ code=$?; [ "$code" -gt 128 ] || note failed; exit "$code"; }';
  const body = `${replaced('kubeadm')}kubeadm ${command} || ${ended}\n${REMOVE_COPIES}`;
  return role === 'controlPlane'
    ? { before: `${RESTORE}${RECORD_RUN}${KEEP_CONFIGURATION}`, body }
    : { before: KEEP_CONFIGURATION, body };
}

/** A host may have no kubectl. */
export function kubeletBody({ kubectl }: Pick<Upgrade['binaries'], 'kubectl'>): StepBody {
  const also = kubectl === undefined ? '' : `if command -v kubectl >/dev/null; then\n${installed('kubectl')}fi\n`;
  return {
    before: KEEP_CONFIGURATION,
    body: `${also}${replaced('kubelet')}systemctl daemon-reload\nsystemctl restart kubelet`,
    after: 'rm -rf "$D/staged"',
  };
}

/** Runs in its own session under the host's lock, and prints the last lines of its log, which a full disk does not stop. */
export function detached(body: string, waitSeconds: number): string {
  return `set -u
D=\${REFIT_ROOT:-}/var/lib/refit
umask 077
mkdir -p "$D"
BODY=${quoted(body)}
exec 2>&1
LOG=$(mktemp "\${REFIT_ROOT:-}/run/refit.XXXXXX" 2>/dev/null || mktemp "$D/log.XXXXXX")
setsid -w flock -o -E ${EXIT_BUSY} -w ${waitSeconds} "$D/kubeadm.lock" sh -c "$BODY" </dev/null >"$LOG" 2>&1
code=$?
tail -n 20 "$LOG"
cp "$LOG" "$D/last.log"
rm "$LOG"
exit $code
`;
}

/** As one word of a POSIX shell: the only way in which a value may enter a script. */
export function quoted(text: string): string {
  if (text.includes('\0')) throw new RefitError('REFIT_FILE', 'a value for a script on a host contains a NUL byte');
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
