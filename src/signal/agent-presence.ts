/**
 * Encodes what an agent of Refit announces about itself on its object, and finds out from the object which agent acts
 * on a node.
 */
import { type KubeObject, readyCondition } from '../kube/resources.ts';
import { defined, isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import { printable } from '../util/printable.ts';
import { decodeReport, decodeSignal } from './annotations.ts';
import { anAmount, aText, exactly, type Members, readMembers, recordOf } from './members.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from './names.ts';
import { isAllowance } from './node-configuration.ts';

/**
 * Reads a reason for people. Others may write this annotation too, so the text is shortened and control characters are
 * replaced.
 */
function aReason(value: unknown): string | undefined {
  const text = aText(value);
  return text === undefined ? undefined : printable(text.slice(0, 600));
}

const ANSWER = {
  /**
   * The number of bytes that downloads may use, rounded down. The agent measures it from time to time, even if no check
   * asks for downloads. It is absent if the number is not known.
   */
  room: anAmount,
  /** The size of the largest file that the check names, in bytes. It is 0 if no server reported a size. */
  bytes: anAmount,
  /** Says why this host cannot download a file that the check names. */
  problem: aReason,
};

export interface DownloadAnswer extends Members<typeof ANSWER> {
  /** The id of the check. It is empty before the first check. */
  readonly id: string;
}

/** The maximum number of files that an agent names. */
const MOST_FILES = 5;

/** Says whether a kubelet refuses to start on cgroup v1, or is allowed to start there. */
export type CgroupV1 = 'refused' | 'allowed';

const KEPT_GONE = ['Expired', 'DiskFull', 'Removed', 'Changed'] as const;
type KeptGone = (typeof KEPT_GONE)[number];

const KEPT = {
  /** The version of the binary. */
  version: aReason,
  sha256: (value: unknown) =>
    typeof value === 'string' && /^[0-9a-f]{64}$/.test(value) ? value : undefined,
  /**
   * The time at which the agent removes the binary, in RFC 3339 format. If it is absent, the agent removes the binary
   * at the next upgrade.
   */
  until: (value: unknown) =>
    typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value.slice(0, 40) : undefined,
  /**
   * The reason why the node can no longer go back to the binary. Either the agent removed the binary because its time
   * was over or because a download needed the space, or somebody else removed or changed the file.
   */
  gone: (value: unknown): KeptGone | undefined => KEPT_GONE.find((reason) => reason === value),
};

/**
 * The binary that the host keeps so that the node can go back to it, or the reason why the host no longer keeps a
 * binary.
 */
export type KeptFacts = Members<typeof KEPT>;

const KEPT_BUNDLE = { version: KEPT.version, until: KEPT.until, gone: KEPT.gone };

/** The airgap bundles of the previous version, or the reason why the host no longer has them. */
export type KeptBundleFacts = Members<typeof KEPT_BUNDLE>;

const PRESENCE = {
  /** True while this agent leaves every signal to k0s's own agent. */
  aside: exactly(true),
  /**
   * Says why the agent cannot find out whether k0s's own agent acts. Until the agent finds this out, it carries out no
   * new signal.
   */
  doubt: aReason,
  /**
   * Says whether the kubelet of this host may start on cgroup v1. It is absent on cgroup v2, without a kubelet, and if the
   * agent does not check it.
   */
  cgroupV1: (value: unknown): CgroupV1 | undefined =>
    value === 'refused' || value === 'allowed' ? value : undefined,
  /**
   * The names of the files in `/etc/k0s/containerd.d` that are written for containerd 1. It is absent if the host has
   * none.
   */
  oldContainerd: (value: unknown): readonly string[] | undefined =>
    Array.isArray(value) && value.length > 0
      ? value.slice(0, MOST_FILES).flatMap((name) => aReason(name) ?? [])
      : undefined,
  /** True if the options of the agent say that no plan may contain the node. */
  excluded: exactly(true),
  /** Names what the agent can upgrade. If the member is absent, the agent upgrades k0s. */
  procedure: exactly('kubeadm'),
  /** Lists what Cluster API may change on this host apart from versions. */
  configurable: (value: unknown): readonly string[] | undefined =>
    Array.isArray(value) ? value.filter(isAllowance) : undefined,
  /**
   * The last answer to a download check; absent for an agent of a version that checks no downloads.
   */
  checked: (value: unknown): DownloadAnswer | undefined =>
    isRecord(value) && typeof value['id'] === 'string'
      ? { id: value['id'], ...readMembers(value, ANSWER) }
      : undefined,
  /**
   * The previous binary of this host. It is absent if the host has no previous binary, or if the agent's version does
   * not announce it.
   */
  kept: recordOf(KEPT),
  /** The previous airgap bundles of this host. The member is absent if the agent of the host has placed no bundles. */
  keptBundle: recordOf(KEPT_BUNDLE),
};

/** The part of an agent's announcement about the files that its host keeps for a roll-back. */
export type KeptAnnouncement = Pick<Members<typeof PRESENCE>, 'kept' | 'keptBundle'>;

export interface AgentPresence extends Members<typeof PRESENCE> {
  readonly version: string;
  /** The time when the agent started, in RFC 3339 format. */
  readonly since: string;
}

/** The interval of heartbeats in milliseconds. It is the interval at which a kubelet writes an unchanged status of its Node. */
export const HEARTBEAT_MS = 300_000;

const HEARTBEAT = {
  /** The time of the heartbeat by the clock of the host, in RFC 3339 format. */
  at: aText,
  /**
   * The `since` that the author of the heartbeat announced. It identifies the agent. The time in `at` cannot identify
   * the agent, because a clock may be set back.
   */
  since: aText,
  /** The bytes that are free for a payload; absent if they are not known. */
  room: anAmount,
};

export type Heartbeat = Members<typeof HEARTBEAT>;

export type Procedure = 'k0s' | 'kubeadm';

export interface NodeAgent {
  readonly ours: boolean;
  /** Names the agent for people, such as `Refit 0.9.0`. */
  readonly title: string;
  /** Says what the agent cannot do. It is set only if it is certain that the agent is not Refit's. */
  readonly lacks?: string;
  /**
   * Says why the agent cannot find out whether another agent acts. Until the agent finds this out, it carries out no
   * new signal.
   */
  readonly doubt?: string;
  /** True if the agent excludes its node from plans. */
  readonly excluded?: true;
  /** The previous binary of the host, as its agent announces it. */
  readonly kept?: KeptFacts;
  /** The previous airgap bundles of the host, as its agent announces them. */
  readonly keptBundle?: KeptBundleFacts;
}

/** Returns the procedure of the agent that acts on the node's signals; undefined if that is not an agent of Refit. */
export function procedureOf(node: KubeObject): Procedure | undefined {
  return agentOf(node).ours ? (presenceOn(node)?.procedure ?? 'k0s') : undefined;
}

/**
 * Returns what the agent that acts on the node's signals may change there for Cluster API. Returns an empty list if
 * that is not an agent of Refit.
 */
export function configurableOn(node: KubeObject): readonly string[] {
  if (!agentOf(node).ours) return [];
  return presenceOn(node)?.configurable ?? [];
}

/**
 * Returns whether the kubelet of the object's host may start on cgroup v1. Returns undefined if that is not known, or
 * does not matter. The host itself writes the annotation, and everybody who may change the object can write it, too. So
 * the answer may only delay work, and must never be a reason to start work. If the agent has been silent for long, its
 * annotation does not count, because the agent may have been removed.
 */
export function cgroupV1On(object: KubeObject): CgroupV1 | undefined {
  return presentOn(object)?.cgroupV1;
}

/**
 * Returns true if an agent on the object's host announces cgroup v1 if it finds it: then no announcement means that the
 * host has cgroup v2. The agent for kubeadm does not look, and an agent that has been silent for long may be gone.
 */
export function tellsCgroups(object: KubeObject): boolean {
  const presence = presentOn(object);
  return presence !== undefined && presence.procedure === undefined;
}

/** Returns the names of the files that `oldContainerd` of the announcement has; an empty list if the agent is silent. */
export function oldContainerdOn(object: KubeObject): readonly string[] {
  return presentOn(object)?.oldContainerd ?? [];
}

/** Milliseconds by which the last heartbeat of an agent must be older than that of its kubelet for the agent to count as silent. */
export const SILENT_MS = 3 * HEARTBEAT_MS;

/**
 * Returns the milliseconds from the last heartbeat of the agent to the last heartbeat of the kubelet. Both use the
 * clock of their host, which may be wrong. Returns NaN if the agent or the kubelet sends no heartbeat.
 */
export function silenceOn(object: KubeObject): number {
  const kubelet = readyCondition(object)?.lastHeartbeatTime;
  return Date.parse(kubelet ?? '') - Date.parse(heartbeatOn(object).at ?? '');
}

/** Returns the value of the annotation that `presenceOn` reads. */
export function encodePresence(presence: AgentPresence): string {
  return JSON.stringify(presence);
}

const THEIRS = {
  ours: false,
  lacks: 'no roll-back, no resumed download, no proof that the node is Ready',
} as const;

/**
 * Returns which agent acts on the object: the agent that wrote last. If a status has no report of Refit's agent and is
 * newer than the start of Refit's agent, k0s's own agent wrote the status. The result is cached for each version of the
 * object.
 */
export const agentOf = onceForEach((object: KubeObject): NodeAgent => {
  const agent = actingAgent(object, presenceOn(object));
  return presentOn(object)?.excluded === true ? { ...agent, excluded: true } : agent;
});

function actingAgent(object: KubeObject, presence: AgentPresence | undefined): NodeAgent {
  const isAside = presence?.aside === true || hasForeignStatus(object, presence);
  if (presence?.doubt !== undefined)
    return {
      ours: false,
      title: `unknown (Refit ${presence.version} waits)`,
      doubt: presence.doubt,
    };
  if (isAside && presence !== undefined)
    return { ...THEIRS, title: `k0s's own (Refit ${presence.version} stands aside)` };
  if (presence !== undefined)
    return {
      ours: true,
      title: `Refit ${presence.version}`,
      ...defined({ kept: presence.kept, keptBundle: presence.keptBundle }),
    };
  return isAside ? { ...THEIRS, title: "k0s's own" } : { ours: false, title: 'unknown' };
}

/** Returns the last answer of the agent that acts on the object; undefined if it cannot check downloads. */
export function downloadAnswerOn(object: KubeObject): DownloadAnswer | undefined {
  return agentOf(object).ours ? presenceOn(object)?.checked : undefined;
}

/**
 * Returns the heartbeat of the agent that acts on the node. Returns an empty heartbeat if this agent sends no
 * heartbeats. A heartbeat from an earlier agent of the host does not count.
 */
export function heartbeatOn(node: KubeObject): Heartbeat {
  const value = parseJson(node.metadata.annotations?.[HEARTBEAT_ANNOTATION]);
  const heartbeat = isRecord(value) ? readMembers(value, HEARTBEAT) : {};
  return heartbeat.since === presenceOn(node)?.since ? heartbeat : {};
}

/** Returns what the agent announces; undefined if it has been silent for long, because it may have been removed. */
function presentOn(object: KubeObject): AgentPresence | undefined {
  return silenceOn(object) > SILENT_MS ? undefined : presenceOn(object);
}

/** Reads what the agent announces on the object. Others may write the annotation, too, so an invalid value counts as absent. */
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
