/** Queries the health of the etcd members of the control-plane hosts, and finds problems in their answers. */
import { isRecord, parseJson, recordsIn } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { listed } from '../../../util/phrases.ts';
import { scalarText } from '../../../util/scalar-text.ts';
import { filledScript } from './filled-script.ts';

/** The answer of the member on one host, about itself and the other members. */
export interface EtcdMember {
  readonly cluster: string;
  readonly id: string;
  /** The id of the leader; `0` if there is no leader. */
  readonly leader: string;
  readonly members: readonly {
    readonly ID: string;
    readonly name: string;
    readonly isLearner: boolean;
    readonly urls?: readonly string[];
  }[];
  readonly alarms: readonly string[];
}

/**
 * The answer for one host. A string is the reason why the member did not answer. False means that it is not possible to
 * query the member of the host.
 */
export type EtcdAnswer = EtcdMember | string | false;

/**
 * Returns a script that queries a member of etcd. The script uses the certificates of the host on which it runs. `url`
 * is the address of a member on another host. If `url` is empty, the script queries the member of its own host.
 */
export function etcdScript(url = ''): string {
  return filledScript('ask-etcd.sh', { MEMBER: url });
}

export function moveLeaderScript(to: string): string {
  return filledScript('move-leader.sh', { TO: to });
}

/**
 * Returns a script that prints the file of the snapshot and its SHA-256, or the reason why there is no snapshot. If a
 * certificate is given, only the owner of its key can read the file.
 */
export function snapshotScript(version: string, keep: number, certificate = ''): string {
  const values = { VERSION: version, KEEP: keep, CERTIFICATE: certificate };
  return filledScript('take-snapshot.sh', values);
}

/**
 * Parses the lines that ask-etcd.sh prints. Returns undefined if the host has no member, because etcd is external or
 * the manifest of etcd is missing.
 */
export function etcdAnswer(lines: readonly string[]): EtcdAnswer | undefined {
  if (lines.length === 0) return undefined;
  // It is not possible to query the member, because its gateway is switched off or curl is missing on the host.
  if (lines.every((line) => line.startsWith('404 '))) return false;
  const answer = memberBy(lines.map((line) => parseJson(line)));
  const odd =
    lines.find((line) => !/^\{"(header|members)"/.test(line)) ?? 'its answer cannot be read';
  return answer ?? (odd.slice(0, 200) || 'no answer');
}

/**
 * Returns the member that the answers describe; undefined if an answer is incomplete. The gateway leaves out values
 * that are false or zero, so a missing value means false or zero. A member that was added but never started has no
 * name.
 */
function memberBy([health, own, known, alarmed]: readonly unknown[]): EtcdMember | undefined {
  const { cluster_id: cluster, member_id: id } = recordIn(own, 'header');
  const leader = isRecord(own) ? (own['leader'] ?? '0') : undefined;
  const members = listIn(known, 'members').map(
    ({ ID, name = '', isLearner = false, clientURLs }) => {
      const urls = (Array.isArray(clientURLs) ? clientURLs : [])
        .map(scalarText)
        .filter((url) => URL_OF_MEMBER.test(url));
      return { ID: scalarText(ID), name: scalarText(name), isLearner: isLearner === true, urls };
    },
  );
  const ids = [recordIn(health, 'header')['member_id'], ...members.map(({ ID }) => ID)];
  if (members.length === 0 || !ids.every(isId) || !isId(cluster) || !isId(id) || !isId(leader))
    return undefined;
  const alarms = listIn(alarmed, 'alarms').map(({ alarm }) => scalarText(alarm).slice(0, 30));
  return { cluster, id, leader, members, alarms };
}

const URL_OF_MEMBER = /^https:\/\/[\w.:[\]-]+$/;

function isId(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value);
}

function recordIn(answer: unknown, name: string): Record<string, unknown> {
  const value = isRecord(answer) ? ownMember(answer, name) : undefined;
  return isRecord(value) ? value : {};
}

function listIn(answer: unknown, name: string): Record<string, unknown>[] {
  return recordsIn(isRecord(answer) ? ownMember(answer, name) : undefined);
}

/** Returns why no member of etcd can be asked for a snapshot. A host without a member has no answer. */
export function whyNoMember(answers: ReadonlyMap<string, EtcdAnswer>): string {
  if (answers.size === 0)
    return 'etcd is external, because no host of the control plane runs a member';
  const [[name, answer] = ['', false]] = answers;
  return typeof answer !== 'string'
    ? `the member of etcd on ${listed([...answers.keys()])} cannot be asked: curl or the client certificate for its health is missing there, or its HTTP gateway is off`
    : `the member of etcd on ${name} does not answer: ${answer}`;
}

export interface Problem {
  readonly found: string;
  readonly cure: string;
}

/**
 * Returns the problems that must be fixed before a member may be stopped. The keys of `answers` are the names of the
 * hosts.
 */
export function etcdProblems(answers: ReadonlyMap<string, EtcdAnswer>): Problem[] {
  const silent = [...answers].flatMap(([host, answer]): Problem[] => {
    if (typeof answer !== 'string') return [];
    const cure = `see kubectl -n kube-system logs etcd-${host}; if the host is gone, replace it as the guide describes`;
    return [{ found: `the member on ${host} does not answer (${answer})`, cure }];
  });
  const told = [...answers].flatMap(([host, answer]) =>
    typeof answer === 'object' ? [{ host, ...answer }] : [],
  );
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
        cure: 'join one of them again',
      })),
    ...told
      .filter(({ leader }) => leader === '0')
      .map(({ host }) => ({
        found: `the member on ${host} sees no leader`,
        cure: 'start the other members, because etcd needs a majority of them',
      })),
    ...[...alarms].map((alarm) => ({
      found: `alarm ${alarm}`,
      cure: 'remove its cause, then run etcdctl alarm disarm',
    })),
    ...first.members.flatMap((each) => memberProblems(each, here)),
  ];
}

/**
 * Returns the problems of a member. `here` has the ids of the members on hosts of the manifest. It is undefined unless
 * all of these hosts answered.
 */
function memberProblems(
  { ID, name, isLearner }: EtcdMember['members'][number],
  here?: ReadonlySet<string>,
): Problem[] {
  const hex = BigInt(ID).toString(16);
  const or = `or run etcdctl member remove ${hex}`;
  if (name === '')
    return [{ found: `member ${hex} was added, but never started`, cure: `start it, ${or}` }];
  if (isLearner)
    return [{ found: `member ${name} is a learner`, cure: `wait until it is promoted, ${or}` }];
  if (here?.has(ID) !== false) return [];
  return [{ found: `member ${name} is on no host of the manifest`, cure: `add its host, ${or}` }];
}

/**
 * Returns the id of a member that can become the leader. Returns undefined if `own` is not the leader, or if no other
 * member can become the leader.
 */
export function nextLeader(
  own: EtcdAnswer | undefined,
  others: Iterable<EtcdAnswer>,
): string | undefined {
  if (typeof own !== 'object' || own.leader !== own.id) return undefined;
  for (const other of others) if (typeof other === 'object' && other.id !== own.id) return other.id;
  return undefined;
}
