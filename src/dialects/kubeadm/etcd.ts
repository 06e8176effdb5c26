/** Asks the etcd members of the control-plane hosts for their health, and judges what they say. */
import { z } from 'zod';
import { parseJson } from '../../util/json.ts';
import { PRELUDE, quoted } from './scripts.ts';

const id = z.string().regex(/^\d{1,20}$/);
const status = z.object({ header: z.object({ cluster_id: id, member_id: id }), leader: id.default('0') });
/** A member that was added, but never started, has no name. Of values that are false or zero the gateway says nothing. */
const member = z.object({ ID: id, name: z.string().max(253).default(''), isLearner: z.boolean().default(false) });
const list = z.object({ members: z.array(member) });
const alarms = z.object({ alarms: z.array(z.object({ alarm: z.string().max(30) })).default([]) });
const read = z.object({ header: z.object({ member_id: id }) });

/** What the member of one host says of itself and of the others. */
export interface EtcdMember {
  readonly cluster: string;
  readonly id: string;
  /** Its id; `0` if there is none. */
  readonly leader: string;
  readonly members: readonly z.infer<typeof member>[];
  readonly alarms: readonly string[];
}

/** A text is why the member did not answer. */
export type EtcdAnswer = EtcdMember | string;

/** kubeadm's own client certificate for health checks asks etcd's HTTP gateway, which takes and gives JSON. */
const CALL = `PKI=$R/etc/kubernetes/pki/etcd
URL=$(sed -n 's/^ *- --listen-client-urls=\\([^,]*\\).*/\\1/p' "$MANIFESTS/etcd.yaml" 2>/dev/null || true)
etcd() {
  curl -sS --noproxy '*' --max-time "\${3:-10}" --cacert "$PKI/ca.crt" --cert "$PKI/healthcheck-client.crt" \\
    --key "$PKI/healthcheck-client.key" -d "$2" "$URL/v3/$1"
}
`;

/** A linearizable read proves that the member and the leader reach each other. */
export const ETCD_FACTS = `${CALL}if [ -n "$URL" ] && ! command -v curl >/dev/null; then
  echo "warn=curl is not installed: the health of etcd is not checked"
elif [ -n "$URL" ]; then
  for question in 'kv/range {"key":"aGVhbHRo"}' 'maintenance/status {}' 'cluster/member/list {}' \\
    'maintenance/alarm {"action":"GET"}'; do
    echo "etcd=$(etcd "\${question%% *}" "\${question#* }" 2>&1 | tr -d '\\n' | cut -c 1-20000)"
  done
fi
`;

export function moveLeaderScript(to: string): string {
  return `TO=${quoted(to)}\n${PRELUDE}${CALL}etcd maintenance/transfer-leadership "{\\"targetID\\":\\"$TO\\"}"\n`;
}

/** From the lines that `ETCD_FACTS` prints. Undefined if this host was not asked: etcd is external. */
export function etcdAnswer(lines: readonly string[]): EtcdAnswer | undefined {
  if (lines.length === 0) return undefined;
  const [health, own, known, alarmed] = lines.map((line) => parseJson(line));
  const parsed = z.tuple([read, status, list, alarms]).safeParse([health, own, known, alarmed]);
  const odd = lines.find((line) => !/^\{"(header|members)"/.test(line)) ?? 'its answer cannot be read';
  if (!parsed.success) return odd.slice(0, 200) || 'no answer';
  const [, { header, leader }, { members }, { alarms: raised }] = parsed.data;
  return {
    cluster: header.cluster_id,
    id: header.member_id,
    leader,
    members,
    alarms: raised.map(({ alarm }) => alarm),
  };
}

/** What is wrong, and what to do. */
export interface Problem {
  readonly found: string;
  readonly cure: string;
}

/** What forbids to stop a member; by host. */
export function etcdProblems(answers: ReadonlyMap<string, EtcdAnswer>): Problem[] {
  const silent = [...answers].flatMap(([host, answer]): Problem[] => {
    if (typeof answer !== 'string') return [];
    const cure = `see kubectl -n kube-system logs etcd-${host}`;
    return [{ found: `the member on ${host} does not answer (${answer})`, cure }];
  });
  const told = [...answers].flatMap(([host, answer]) => (typeof answer === 'string' ? [] : [{ host, ...answer }]));
  const [first] = told;
  if (!first) return silent;
  const here = silent.length > 0 ? undefined : new Set(told.map((each) => each.id));
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

/** `here`: members of hosts in the manifest, if all of them answered. */
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
  if (own === undefined || typeof own === 'string' || own.leader !== own.id) return undefined;
  for (const other of others) if (typeof other !== 'string' && other.id !== own.id) return other.id;
  return undefined;
}
