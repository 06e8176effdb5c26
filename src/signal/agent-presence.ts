/** Encodes what an agent of Refit says of itself on its object, and finds out from the object whose agent a node has. */
import { type KubeObject, readyCondition } from '../kube/resources.ts';
import { isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import { printable } from '../util/printable.ts';
import { decodeReport, decodeSignal } from './annotations.ts';
import { anAmount, aText, exactly, type Members, readMembers } from './members.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from './names.ts';
import { isAllowance } from './node-configuration.ts';

/** For people, from an annotation that others may write too. */
function aReason(value: unknown): string | undefined {
  const text = aText(value);
  return text === undefined ? undefined : printable(text.slice(0, 600));
}

const ANSWER = {
  /** Bytes that downloads may take: rounded down, and measured now and then, asked or not. Absent while that is not known. */
  room: anAmount,
  /** Of the largest file that was named; 0 if no server said it. */
  bytes: anAmount,
  /** Why this host cannot download what was named. */
  problem: aReason,
};

export interface DownloadAnswer extends Members<typeof ANSWER> {
  /** Id of the check; empty before the first one. */
  readonly id: string;
}

const PRESENCE = {
  /** True while it leaves every signal to k0s's own agent. */
  aside: exactly(true),
  /** Why it does not know whether k0s's own agent acts: it carries out no new signal until it does. */
  doubt: aReason,
  /** Whether the kubelet that runs there may start on cgroup v1. Absent on cgroup v2, without a kubelet, and where nobody looked. */
  cgroupV1: (value: unknown): 'refused' | 'allowed' | undefined =>
    value === 'refused' || value === 'allowed' ? value : undefined,
  /** What it can upgrade; absent: k0s. */
  procedure: exactly('kubeadm'),
  /** What Cluster API may change besides versions. */
  configurable: (value: unknown): readonly string[] | undefined =>
    Array.isArray(value) ? value.filter(isAllowance) : undefined,
  /** Absent: an agent of a version that checks no downloads. */
  checked: (value: unknown): DownloadAnswer | undefined =>
    isRecord(value) && typeof value['id'] === 'string'
      ? { id: value['id'], ...readMembers(value, ANSWER) }
      : undefined,
};

export interface AgentPresence extends Members<typeof PRESENCE> {
  readonly version: string;
  /** RFC 3339: when the agent started. */
  readonly since: string;
}

/** Milliseconds: as often a kubelet writes its Node's status if nothing changes there. */
export const HEARTBEAT_MS = 300_000;

const HEARTBEAT = {
  /** RFC 3339, by the clock of the host. `since` is that of its agent: a clock may be put right, so times do not tell whose it is. */
  at: aText,
  since: aText,
  /** Bytes that are free for a payload; absent if that is not known. */
  room: anAmount,
};

export type Heartbeat = Members<typeof HEARTBEAT>;

export type Procedure = 'k0s' | 'kubeadm';

export interface NodeAgent {
  readonly ours: boolean;
  /** For people, such as `Refit 0.9.0`. */
  readonly title: string;
  /** What the agent does not do, if it is known to be another one. */
  readonly lacks?: string;
  /** Why it does not know whether another agent acts: it carries out no new signal until it does. */
  readonly doubt?: string;
}

/** The procedure of the agent that acts on the node's signals; undefined if it is not Refit's. */
export function procedureOf(node: KubeObject): Procedure | undefined {
  return agentOf(node).ours ? (presenceOn(node)?.procedure ?? 'k0s') : undefined;
}

/** What the agent that acts on the node's signals may change there for Cluster API. */
export function configurableOn(node: KubeObject): readonly string[] {
  return (agentOf(node).ours && presenceOn(node)?.configurable) || [];
}

/**
 * Whether the kubelet of the object's host may start on cgroup v1; undefined if that is not known, or no matter. The host itself
 * writes the annotation, as may others who change the object: a hint that may hold work back, and never allows anything. What an agent
 * said that is silent now does not count: it may have been removed.
 */
export function cgroupV1On(object: KubeObject): AgentPresence['cgroupV1'] {
  return silenceOn(object) > SILENT_MS ? undefined : presenceOn(object)?.cgroupV1;
}

/** Milliseconds for which an agent may say nothing while the kubelet of its host does. */
export const SILENT_MS = 3 * HEARTBEAT_MS;

/**
 * Milliseconds between the last words of the kubelet and of the agent. Both write by the clock of their host, so it may be wrong. NaN
 * where one of them sends no heartbeat.
 */
export function silenceOn(object: KubeObject): number {
  const kubelet = readyCondition(object)?.lastHeartbeatTime;
  return Date.parse(kubelet ?? '') - Date.parse(heartbeatOn(object).at ?? '');
}

export function encodePresence(presence: AgentPresence): string {
  return JSON.stringify(presence);
}

const THEIRS = {
  ours: false,
  lacks: 'no roll-back, no resumed download, no proof that the node is Ready',
} as const;

/** The last word counts: a status without our report, from after our agent's start, is of k0s's own agent. */
export const agentOf = onceForEach((object: KubeObject): NodeAgent => {
  const presence = presenceOn(object);
  const isAside = presence?.aside === true || hasForeignStatus(object, presence);
  if (presence?.doubt !== undefined)
    return {
      ours: false,
      title: `unknown (Refit ${presence.version} waits)`,
      doubt: presence.doubt,
    };
  if (isAside && presence !== undefined)
    return { ...THEIRS, title: `k0s's own (Refit ${presence.version} stands aside)` };
  if (presence !== undefined) return { ours: true, title: `Refit ${presence.version}` };
  return isAside ? { ...THEIRS, title: "k0s's own" } : { ours: false, title: 'unknown' };
});

/** The last answer of the agent that acts on the object; undefined if it cannot check downloads. */
export function downloadAnswerOn(object: KubeObject): DownloadAnswer | undefined {
  return agentOf(object).ours ? presenceOn(object)?.checked : undefined;
}

/** Empty for an agent that sends none; what an earlier one of the host sent does not count. */
export function heartbeatOn(node: KubeObject): Heartbeat {
  const value = parseJson(node.metadata.annotations?.[HEARTBEAT_ANNOTATION]);
  const heartbeat = isRecord(value) ? readMembers(value, HEARTBEAT) : {};
  return heartbeat.since === presenceOn(node)?.since ? heartbeat : {};
}

/** Others may write this annotation too: an invalid one is none. */
const presenceOn = onceForEach(
  ({ metadata: { annotations } }: KubeObject): AgentPresence | undefined => {
    const value = parseJson(annotations?.[AGENT_ANNOTATION]);
    if (!isRecord(value)) return undefined;
    const { version, since } = value;
    if (typeof version !== 'string' || typeof since !== 'string') return undefined;
    return { version: version.slice(0, 40), since, ...readMembers(value, PRESENCE) };
  },
);

function hasForeignStatus(
  { metadata: { annotations } }: KubeObject,
  presence: AgentPresence | undefined,
): boolean {
  const signal = decodeSignal(annotations);
  if (signal?.status === undefined || decodeReport(annotations, signal.created) !== undefined)
    return false;
  return presence === undefined || Date.parse(signal.status.timestamp) > Date.parse(presence.since);
}
