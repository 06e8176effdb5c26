/**
 * Encodes and decodes a signal: the two annotations that k0s defines, and the annotations of Refit for its policy and
 * its report.
 */
import { escapeLikeGo, isRecord, isText, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import { anAmount, aText, exactly, type Members, readMembers, recordOf } from './members.ts';
import * as names from './names.ts';

const KINDS = ['k0supdate', 'airgapupdate', 'kubeadmupdate'] as const;

export interface SignalCommand {
  readonly id: number;
  /** The autopilot of k0s knows only the first two kinds. */
  readonly kind: (typeof KINDS)[number];
  readonly url: string;
  readonly version: string;
  readonly sha256?: string;
  readonly forceupdate?: boolean;
}

export interface SignalData {
  readonly planId: string;
  /** This text is never parsed. Together with planId and the id of the command it identifies a signal. */
  readonly created: string;
  readonly command: SignalCommand;
  readonly status?: { readonly status: string; readonly timestamp: string };
}

export type Annotations = Readonly<Record<string, string>>;

/**
 * Returns the signal; undefined if there is none, or if a k0s node would not accept it. The result is cached for each
 * version of the annotations.
 */
export function decodeSignal(annotations: Annotations | undefined): SignalData | undefined {
  return annotations && decode(annotations);
}

/**
 * Returns the version whose installation the agent reported as completed; undefined if the last signal installed no
 * version.
 */
export function installedVersion(annotations: Annotations | undefined): string | undefined {
  const { command, status } = decodeSignal(annotations) ?? {};
  // Only a k0supdate installs a version. A bundle of images does not change the version.
  const isInstalled = command?.kind === 'k0supdate' && status?.status === 'Completed';
  return isInstalled ? command.version : undefined;
}

/**
 * Returns the version that the last signal left running, as far as the agent proved it; undefined if the agent proved
 * none. A kubelet of k0s reports no build, so only the agent knows which build of a release runs.
 */
export function provenVersion(annotations: Annotations | undefined): string | undefined {
  const signal = decodeSignal(annotations);
  if (signal?.command.kind !== 'k0supdate') return undefined;
  const { command, created, status } = signal;
  if (status?.status === 'Completed') return command.version;
  const report = decodeReport(annotations, created);
  if (names.isFinal(status?.status)) {
    // Without this member the update failed before it changed the service. With `false`, either version may run.
    return report?.rolledBack === false ? undefined : report?.from;
  }
  return BEFORE_CHANGE.has(status?.status) ? report?.from : undefined;
}

/** The statuses of a signal whose agent has not changed the service yet. */
const BEFORE_CHANGE: ReadonlySet<string | undefined> = new Set([
  undefined,
  'Downloading',
  'Cordoning',
]);

/**
 * Decodes the annotations, and caches the result, because thousands of nodes are read every second, and almost none of them has changed.
 */
const decode = onceForEach((annotations: Annotations): SignalData | undefined =>
  annotations[names.SIGNAL_VERSION_ANNOTATION] === 'v2'
    ? toSignal(parseJson(annotations[names.SIGNAL_DATA_ANNOTATION]))
    : undefined,
);

/** Returns the two annotations of a signal, with the key order and the escapes that k0s itself writes. */
export function encodeSignal({
  planId,
  created,
  command,
  status,
}: SignalData): Record<string, string> {
  const data = { planId, created, command: encodeCommand(command), ...(status ? { status } : {}) };
  return {
    [names.SIGNAL_VERSION_ANNOTATION]: 'v2',
    [names.SIGNAL_DATA_ANNOTATION]: escapeLikeGo(JSON.stringify(data)),
  };
}

/** Returns the command as the JSON object that a signal contains. */
export function encodeCommand({
  id,
  kind,
  url,
  version,
  sha256,
  forceupdate,
}: SignalCommand): object {
  return {
    id,
    [kind]: {
      url,
      version,
      ...(sha256 ? { sha256 } : {}),
      ...(forceupdate ? { forceupdate } : {}),
    },
  };
}

function toSignal(value: unknown): SignalData | undefined {
  if (!isRecord(value)) return undefined;
  const { planId, created, status } = value;
  const command = decodeCommand(value['command']);
  if (!isText(planId) || !isText(created) || !command) return undefined;
  const signal = { planId, created, command };
  if (status === undefined || status === null) return signal;
  if (!isRecord(status) || !isText(status['status']) || !isText(status['timestamp']))
    return undefined;
  return { ...signal, status: { status: status['status'], timestamp: status['timestamp'] } };
}

/** Returns the command; undefined if a k0s node would not accept it. */
export function decodeCommand(value: unknown): SignalCommand | undefined {
  if (!isRecord(value) || !Number.isInteger(value['id'])) return undefined;
  const [kind, ...others] = KINDS.filter((each) => isRecord(value[each]));
  const body = kind && value[kind];
  if (!kind || !isRecord(body) || others.length > 0) return undefined;
  const { url, version, sha256, forceupdate } = body;
  if (!isText(version) || !isText(url) || !URL.canParse(url)) return undefined;
  // As in Go, null counts as absent, and a value of another type is refused. If a bad sha256 were ignored, the download
  // would not be verified.
  if (typeof (sha256 ?? '') !== 'string' || typeof (forceupdate ?? false) !== 'boolean')
    return undefined;
  const more = { ...(isText(sha256) && { sha256 }), ...(forceupdate === true && { forceupdate }) };
  return { id: value['id'] as number, kind, url, version, ...more };
}

/** The most characters of the reason in a report. */
export const REASON_LIMIT = 512;

/** The amounts of time that a report may contain: one for each status in which a signal can be while its agent works. */
const TIMES = Object.fromEntries(
  names.REPORTED_STATUSES.filter((status) => !names.isFinal(status)).map((status) => [
    status,
    anAmount,
  ]),
);

/** A snapshot of etcd on a controller. */
export interface EtcdSnapshot {
  /** The time at which the snapshot was taken, in RFC 3339 format. */
  readonly at: string;
  /** The path of the snapshot on the host of the controller. Like `bytes` and `sha256`, it is present only if there is a snapshot. */
  readonly path?: string;
  readonly bytes?: number;
  readonly sha256?: string;
  /** The reason why there is nothing to save, for example because the controller has no etcd. */
  readonly none?: string;
  /** Says why the snapshot failed. */
  readonly failed?: string;
}

const SNAPSHOT = {
  path: aShortText,
  bytes: anAmount,
  sha256: aShortText,
  none: aShortText,
  failed: aShortText,
};

function aShortText(value: unknown): string | undefined {
  return aText(value)?.slice(0, REASON_LIMIT);
}

function toSnapshot(value: unknown): EtcdSnapshot | undefined {
  if (!isRecord(value)) return undefined;
  const at = aShortText(value['at']);
  return at === undefined ? undefined : { at, ...readMembers(value, SNAPSHOT) };
}

const REPORT = {
  /** The version that ran before the upgrade. */
  from: aText,
  /** The milliseconds that the upgrade spent in each earlier status. */
  spent: recordOf(TIMES) as (value: unknown) => Readonly<Record<string, number>> | undefined,
  /** The milliseconds for which the new process had worked when its node was reported as UnCordoning. */
  upMs: anAmount,
  /** Says for people why the upgrade failed or does not continue, in at most REASON_LIMIT characters. */
  reason: (value: unknown) => aText(value)?.slice(0, REASON_LIMIT),
  /** True if the previous binary was restored and runs again. False if the service may still restart. */
  rolledBack: (value: unknown) => (typeof value === 'boolean' ? value : undefined),
  /** The step that exceeded its time limit in the policy. The drain is the only step that can be reported here. */
  late: exactly('drain'),
  /** True if the agent's own rules refused the signal. */
  refused: exactly(true),
  /**
   * The version of the kept binary that the agent removed. The disk had no space for both this binary and the download.
   */
  removed: aText,
  /**
   * The version whose airgap bundles the agent removed. The disk had no space for both these bundles and the download.
   */
  removedBundle: aText,
  /** The snapshot of etcd that the agent took before it changed the host. */
  etcdSnapshot: toSnapshot,
};

export interface AgentReport extends Members<typeof REPORT> {
  /** The `created` of the signal that the report belongs to. A report of another signal is ignored. */
  readonly created: string;
}

/** Returns the annotation with the report. */
export function encodeReport(report: AgentReport): Record<string, string> {
  return {
    [names.REPORT_ANNOTATION]: JSON.stringify({
      ...report,
      reason: report.reason?.slice(0, REASON_LIMIT),
    }),
  };
}

/** Returns the report; undefined if there is none for the signal with this `created`. */
export function decodeReport(
  annotations: Annotations | undefined,
  created: string,
): AgentReport | undefined {
  const value = parseJson(annotations?.[names.REPORT_ANNOTATION]);
  return isRecord(value) && value['created'] === created
    ? { created, ...readMembers(value, REPORT) }
    : undefined;
}

/** Drain options for a node that drains itself. Without them every pod is evicted, without a time limit. */
const DRAIN = {
  enabled: exactly(false),
  localData: exactly('refuse'),
  unmanagedPods: exactly('refuse'),
  gracePeriodSeconds: (value: unknown) => (Number.isInteger(value) ? anAmount(value) : undefined),
  /** Milliseconds after which the node gives up the drain. */
  timeoutMs: anAmount,
  /**
   * Milliseconds for which the node evicts no pod after its cordon. When the node is cordoned, it is also excluded from
   * external load balancers.
   */
  graceMs: anAmount,
  /** `always` means that the agent removes the cordon after the upgrade even if somebody else set it. */
  uncordon: exactly('always'),
};
export type AgentDrain = Members<typeof DRAIN>;

/** Options for the snapshot of etcd that the agent of a controller takes before it changes the host. */
const ETCD_SNAPSHOT = {
  /** True if the upgrade must fail, before it changes anything, when no snapshot can be taken. */
  require: exactly(true),
  /** The number of snapshots that the host keeps. */
  keep: (value: unknown) => (Number.isInteger(value) ? anAmount(value) : undefined),
  timeoutMs: anAmount,
  /** The certificate, in PEM format, with which the agent encrypts snapshots. */
  certificate: aText,
};
export type AgentSnapshot = Members<typeof ETCD_SNAPSHOT>;

/** This policy overrides the flags of the agent. All times are in milliseconds. */
const POLICY = {
  /** Milliseconds for which the new process must keep running before the upgrade counts as proven. */
  soakMs: anAmount,
  /** Milliseconds that a restarted service may take to answer with its version. */
  restartTimeoutMs: anAmount,
  /** Milliseconds that the node may take to become Ready, counted from the first answer of the new version. */
  readyTimeoutMs: anAmount,
  /** Milliseconds that all attempts of a download may take together. */
  downloadTimeoutMs: anAmount,
  /**
   * The period in milliseconds in which a download before the upgrade starts. The agent chooses a random moment in it,
   * because many nodes and clusters share a server.
   */
  spreadMs: anAmount,
  /**
   * The owner of the cordon that the agent sets when it reports Cordoning. The leader then drains the node and needs no
   * write of its own for the cordon.
   */
  cordonFor: (value: unknown) => aText(value) || undefined,
  /** True if the node was cordoned before it was signalled. That cordon stays. */
  foundCordoned: exactly(true),
  /** True if downloads over plain http are refused, redirects included. */
  requireHttps: exactly(true),
  /** Bytes that a download leaves free on its disk. */
  diskReserveBytes: anAmount,
  /**
   * The agent removes the previous binary after this many milliseconds. If the number is 0, the agent removes it as
   * soon as the upgrade has succeeded. If the member is absent, the binary stays until the next upgrade.
   */
  keepPreviousMs: anAmount,
  drain: recordOf(DRAIN),
  /** The options for a snapshot of etcd. If this member is absent, the agent takes no snapshot. */
  etcdSnapshot: recordOf(ETCD_SNAPSHOT),
  /**
   * `leader` means that the leader that wrote the signal cordons, drains and uncordons the node. If it is absent, the
   * leader's Lease decides.
   */
  cordoning: exactly('leader'),
};
export type AgentPolicy = Members<typeof POLICY>;

/** Returns the annotation with the policy. An empty policy needs no annotation. */
export function encodeAgentPolicy(policy: AgentPolicy): Record<string, string> {
  return Object.keys(policy).length === 0
    ? {}
    : { [names.AGENT_POLICY_ANNOTATION]: JSON.stringify(policy) };
}

/**
 * Returns the policy for the signal with this `created`. Returns an empty policy if the annotation belongs to another
 * signal.
 */
export function agentPolicyFor(annotations: Annotations | undefined, created: string): AgentPolicy {
  const isOurs = annotations?.[names.ROLLOUT_ANNOTATION]?.endsWith(`/${created}`) === true;
  return isOurs ? decodeAgentPolicy(annotations) : {};
}

/** Returns the policy without a check of which signal it belongs to. Returns an empty policy if there is none. */
export function decodeAgentPolicy(annotations: Annotations | undefined): AgentPolicy {
  return recordOf(POLICY)(parseJson(annotations?.[names.AGENT_POLICY_ANNOTATION])) ?? {};
}
