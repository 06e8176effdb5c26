/** Asks the etcd members of the control-plane hosts for their health, and judges what they say. */
import { isRecord, parseJson } from '../util/json.ts';
import { PRELUDE, quoted } from './scripts.ts';

/** What the member of one host says of itself and of the others. */
export interface EtcdMember {
  readonly cluster: string;
  readonly id: string;
  /** Its id; `0` if there is none. */
  readonly leader: string;
  readonly members: readonly ListedMember[];
  readonly alarms: readonly string[];
}

interface ListedMember {
  readonly ID: string;
  readonly name: string;
  readonly isLearner: boolean;
  readonly urls?: readonly string[];
}

/** A text is why the member did not answer; false: the host has a member that cannot be asked. */
export type EtcdAnswer = EtcdMember | string | false;

/** kubeadm's own client certificate for health checks asks etcd's HTTP gateway, which takes and gives JSON. */
const CALL = `CA=$(flag trusted-ca-file "$MANIFESTS/etcd.yaml")
PKI=$R$(dirname "\${CA:-/etc/kubernetes/pki/etcd/ca.crt}")
# A certificate names no address that stands for all.
URL=$(sed -n 's/^ *- --listen-client-urls=\\([^,]*\\).*/\\1/p' "$MANIFESTS/etcd.yaml" 2>/dev/null |
  sed 's/0\\.0\\.0\\.0/127.0.0.1/; s/\\[::]/[::1]/')
etcd() {
  curl -qsS --noproxy '*' --max-time "\${3:-10}" --cacert "$PKI/ca.crt" --cert "$PKI/healthcheck-client.crt" \\
    --key "$PKI/healthcheck-client.key" -d "$2" "$URL/v3/$1"
}
`;

/** A linearizable read proves that the member and the leader reach each other. */
const QUESTIONS = `if [ -n "$URL" ] && ! { command -v curl >/dev/null && [ -e "$PKI/healthcheck-client.key" ]; }; then
  echo "warn=curl or $PKI/healthcheck-client.key is missing: the health of etcd is not checked"
  echo "etcd=404 not asked"
elif [ -n "$URL" ]; then
  for question in 'kv/range {"key":"aGVhbHRo"}' 'maintenance/status {}' 'cluster/member/list {}' \\
    'maintenance/alarm {"action":"GET"}'; do
    echo "etcd=$(etcd "\${question%% *}" "\${question#* }" 2>&1 | tr -d '\\n' | cut -c 1-20000)"
  done
fi
`;

export const ETCD_FACTS = `${CALL}${QUESTIONS}`;

/** Asks the member of another host, with the certificates of this one. */
export function etcdFactsAt(url: string): string {
  return `${CALL}URL=${quoted(url)}\n${QUESTIONS}`;
}

export function moveLeaderScript(to: string): string {
  return `TO=${quoted(to)}\n${PRELUDE}${CALL}etcd maintenance/transfer-leadership "{\\"targetID\\":\\"$TO\\"}"\n`;
}

/** The last 32 bytes of a snapshot are the SHA-256 of all others: it proves that the stream arrived whole. */
export const IS_WHOLE = `is_whole() {
  body=$(($(wc -c <"$1") - 32))
  [ "$body" -gt 0 ] && [ "$(head -c "$body" "$1" | sha256sum | cut -c 1-64)" = "$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \\n')" ]
}
`;

/** Prints the file and its SHA-256, or why there is none. */
export function snapshotScript(version: string, keep: number): string {
  return `VERSION=${quoted(version)}
${PRELUDE}${CALL}${IS_WHOLE}umask 077
fail() { rm -f "$FILE.new"; echo "$*"; exit 1; }
mkdir -p "$D/snapshots" 2>&1
rm -f "$D"/snapshots/*.new
FILE=$D/snapshots/etcd-before-$VERSION-$(date -u +%Y%m%dT%H%M%SZ).db
used=$(du -sk "$R/var/lib/etcd" 2>/dev/null | cut -f 1)
[ "$(df -kP "$D" | awk 'NR == 2 { print $4 }')" -gt "\${used:-0}" ] || fail "$D has no room for a snapshot of etcd, \${used:-0} KiB"
why=$({ etcd maintenance/snapshot '{}' 3600 | sed -n 's/.*"blob":"\\([^"]*\\)".*/\\1/p' | base64 -d >"$FILE.new"; } 2>&1) || true
[ -s "$FILE.new" ] || fail "etcd gave no snapshot\${why:+: $why}"
is_whole "$FILE.new" || fail "the snapshot of etcd is not whole\${why:+: $why}"
! command -v etcdutl >/dev/null || etcdutl snapshot status "$FILE.new" >/dev/null || fail "etcdutl refuses the snapshot of etcd"
sync "$FILE.new"
mv "$FILE.new" "$FILE"
ls -1t "$D"/snapshots/etcd-before-*.db | tail -n +${keep + 1} | while IFS= read -r old; do rm -f -- "$old"; done
echo "\${FILE#"$R"} with SHA-256 $(sha256sum <"$FILE" | cut -c 1-64)"
`;
}

/** From the lines that `ETCD_FACTS` prints. Undefined if the host has no member: etcd is external, or its manifest is missing. */
export function etcdAnswer(lines: readonly string[]): EtcdAnswer | undefined {
  if (lines.length === 0) return undefined;
  // Its gateway is off, or curl is missing.
  if (lines.every((line) => line.startsWith('404 '))) return false;
  const answer = memberBy(lines.map((line) => parseJson(line)));
  const odd = lines.find((line) => !/^\{"(header|members)"/.test(line)) ?? 'its answer cannot be read';
  return answer ?? (odd.slice(0, 200) || 'no answer');
}

/** Of values that are false or zero the gateway says nothing; a member that was added, but never started, has no name. */
function memberBy([health, own, known, alarmed]: readonly unknown[]): EtcdMember | undefined {
  const { cluster_id: cluster, member_id: id } = recordIn(own, 'header');
  const leader = isRecord(own) ? (own['leader'] ?? '0') : undefined;
  const members = listIn(known, 'members').map(({ ID, name = '', isLearner = false, clientURLs }) => {
    const urls = (Array.isArray(clientURLs) ? clientURLs : []).map(String).filter((url) => URL_OF_MEMBER.test(url));
    return { ID: String(ID), name: String(name), isLearner: isLearner === true, urls };
  });
  const ids = [recordIn(health, 'header')['member_id'], ...members.map(({ ID }) => ID)];
  if (members.length === 0 || !ids.every(isId) || !isId(cluster) || !isId(id) || !isId(leader)) return undefined;
  const alarms = listIn(alarmed, 'alarms').map(({ alarm }) => String(alarm).slice(0, 30));
  return { cluster, id, leader, members, alarms };
}

const URL_OF_MEMBER = /^https:\/\/[\w.:[\]-]+$/;

function isId(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value);
}

function recordIn(answer: unknown, name: string): Record<string, unknown> {
  const value = isRecord(answer) ? answer[name] : undefined;
  return isRecord(value) ? value : {};
}

function listIn(answer: unknown, name: string): Record<string, unknown>[] {
  const value = isRecord(answer) ? answer[name] : undefined;
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export interface Problem {
  readonly found: string;
  readonly cure: string;
}

/** What forbids to stop a member; by host. */
export function etcdProblems(answers: ReadonlyMap<string, EtcdAnswer>): Problem[] {
  const silent = [...answers].flatMap(([host, answer]): Problem[] => {
    if (typeof answer !== 'string') return [];
    const cure = `see kubectl -n kube-system logs etcd-${host}, or replace a host that is gone, as the guide says`;
    return [{ found: `the member on ${host} does not answer (${answer})`, cure }];
  });
  const told = [...answers].flatMap(([host, answer]) => (typeof answer === 'object' ? [{ host, ...answer }] : []));
  const [first] = told;
  if (!first) return silent;
  const here = told.length < answers.size ? undefined : new Set(told.map((each) => each.id));
  const alarms = new Set(told.flatMap((each) => each.alarms));
  return [
    ...silent,
    ...told
      .filter(({ cluster }) => cluster !== first.cluster)
      .map(({ host }) => ({
        found: `${host} and ${first.host} have different clusters`,
        cure: 'join one of them anew',
      })),
    ...told
      .filter(({ leader }) => leader === '0')
      .map(({ host }) => ({ found: `the member on ${host} sees no leader`, cure: 'it needs most of the members' })),
    ...[...alarms].map((alarm) => ({ found: `alarm ${alarm}`, cure: 'end its cause, then run etcdctl alarm disarm' })),
    ...first.members.flatMap((each) => memberProblems(each, here)),
  ];
}

/** `here`: members of hosts in the manifest, if all of them are known. */
function memberProblems({ ID, name, isLearner }: EtcdMember['members'][number], here?: ReadonlySet<string>): Problem[] {
  const hex = BigInt(ID).toString(16);
  const or = `or run etcdctl member remove ${hex}`;
  if (name === '') return [{ found: `member ${hex} was added, but never started`, cure: `start it, ${or}` }];
  if (isLearner) return [{ found: `member ${name} is a learner`, cure: `wait until it is promoted, ${or}` }];
  if (here?.has(ID) !== false) return [];
  return [{ found: `member ${name} is on no host of the manifest`, cure: `add its host, ${or}` }];
}

/** Undefined unless this member leads, and another can. */
export function nextLeader(own: EtcdAnswer | undefined, others: Iterable<EtcdAnswer>): string | undefined {
  if (typeof own !== 'object' || own.leader !== own.id) return undefined;
  for (const other of others) if (typeof other === 'object' && other.id !== own.id) return other.id;
  return undefined;
}
