/** Encodes and decodes a signal, two annotations exactly as k0s has them, and our policy and report beside it. */
import { escapeLikeGo, isRecord, isText, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import { anAmount, aText, exactly, type Members, readMembers, recordOf } from './members.ts';
import * as names from './names.ts';

const KINDS = ['k0supdate', 'airgapupdate', 'kubeadmupdate'] as const;

export interface SignalCommand {
  readonly id: number;
  /** The original knows the first two. */
  readonly kind: (typeof KINDS)[number];
  readonly url: string;
  readonly version: string;
  readonly sha256?: string;
  readonly forceupdate?: boolean;
}

export interface SignalData {
  readonly planId: string;
  /** Never parsed: with planId and command id it names one signal. */
  readonly created: string;
  readonly command: SignalCommand;
  readonly status?: { readonly status: string; readonly timestamp: string };
}

export type Annotations = Readonly<Record<string, string>>;

/** Undefined when there is no signal, or none that a k0s node would accept. */
export function decodeSignal(annotations: Annotations | undefined): SignalData | undefined {
  return annotations && decode(annotations);
}

/** Cached: thousands of nodes are read every second, and almost none has changed. */
const decode = onceForEach((annotations: Annotations): SignalData | undefined =>
  annotations[names.SIGNAL_VERSION_ANNOTATION] === 'v2'
    ? toSignal(parseJson(annotations[names.SIGNAL_DATA_ANNOTATION]))
    : undefined,
);

/** The two annotations of a signal, in the key order and with the escapes that k0s itself writes. */
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

/** Undefined when no k0s node would accept it. */
export function decodeCommand(value: unknown): SignalCommand | undefined {
  if (!isRecord(value) || !Number.isInteger(value['id'])) return undefined;
  const [kind, ...others] = KINDS.filter((each) => isRecord(value[each]));
  const body = kind && value[kind];
  if (!kind || !isRecord(body) || others.length > 0) return undefined;
  const { url, version, sha256, forceupdate } = body;
  if (!isText(version) || !isText(url) || !URL.canParse(url)) return undefined;
  // As Go: null counts as absent, and another type is refused. Ignoring a bad sha256 would skip the verification.
  if (typeof (sha256 ?? '') !== 'string' || typeof (forceupdate ?? false) !== 'boolean')
    return undefined;
  const more = { ...(isText(sha256) && { sha256 }), ...(forceupdate === true && { forceupdate }) };
  return { id: value['id'] as number, kind, url, version, ...more };
}

export const REASON_LIMIT = 512;

const TIMES = Object.fromEntries(names.SIGNAL_STATUSES.map((status) => [status, anAmount]));

const REPORT = {
  /** Version that ran before. */
  from: aText,
  /** Milliseconds spent in each earlier status. */
  spent: recordOf(TIMES) as (value: unknown) => Readonly<Record<string, number>> | undefined,
  /** Why it failed or does not go on, for people; at most REASON_LIMIT characters. */
  reason: (value: unknown) => aText(value)?.slice(0, REASON_LIMIT),
  /** True when the previous binary was rolled back to and runs again; false when the service may still restart. */
  rolledBack: (value: unknown) => (typeof value === 'boolean' ? value : undefined),
  /** Step that exceeded the time limit of the policy. */
  late: exactly('drain'),
  /** True when the agent's own rules refused the signal. */
  refused: exactly(true),
};

export interface AgentReport extends Members<typeof REPORT> {
  /** `created` of its signal: a report beside another signal is ignored. */
  readonly created: string;
}

export function encodeReport(report: AgentReport): Record<string, string> {
  return {
    [names.REPORT_ANNOTATION]: JSON.stringify({
      ...report,
      reason: report.reason?.slice(0, REASON_LIMIT),
    }),
  };
}

/** Undefined when there is no report for the signal `created`. */
export function decodeReport(
  annotations: Annotations | undefined,
  created: string,
): AgentReport | undefined {
  const value = parseJson(annotations?.[names.REPORT_ANNOTATION]);
  return isRecord(value) && value['created'] === created
    ? { created, ...readMembers(value, REPORT) }
    : undefined;
}

/** Drain options for a node that drains itself; without options every pod is evicted, without a time limit. */
const DRAIN = {
  enabled: exactly(false),
  localData: exactly('refuse'),
  unmanagedPods: exactly('refuse'),
  gracePeriodSeconds: (value: unknown) => (Number.isInteger(value) ? anAmount(value) : undefined),
  /** Milliseconds after which the node gives up. */
  timeoutMs: anAmount,
  /** Removes also a foreign cordon, once the node is updated. */
  uncordon: exactly('always'),
};
export type AgentDrain = Members<typeof DRAIN>;

/** Overrides the agent's flags. Times in milliseconds. */
const POLICY = {
  /** How long the new process must keep running before the update counts as proven. */
  soakMs: anAmount,
  /** How long a restarted service may take to answer with its version. */
  restartTimeoutMs: anAmount,
  /** How long the node may take to become Ready, from the new version's first answer. */
  readyTimeoutMs: anAmount,
  /** How long a download may take, over all attempts. */
  downloadTimeoutMs: anAmount,
  /** What is fetched ahead begins at a random moment within so long: many nodes and clusters share a server. */
  spreadMs: anAmount,
  /** Owner of the cordon that the agent sets as it reports Cordoning: that saves the leader, which drains, a write. */
  cordonFor: (value: unknown) => aText(value) || undefined,
  /** True when the node was cordoned before it was signalled: that cordon stays. */
  foundCordoned: exactly(true),
  /** Refuses plain http for downloads, redirects included. */
  requireHttps: exactly(true),
  /** Bytes that a download leaves free on its disk. */
  diskReserveBytes: anAmount,
  drain: recordOf(DRAIN),
  /** `leader`: the leader that wrote the signal cordons, drains and uncordons. Absent: the leader's lease decides. */
  cordoning: exactly('leader'),
};
export type AgentPolicy = Members<typeof POLICY>;

export function encodeAgentPolicy(policy: AgentPolicy): Record<string, string> {
  return Object.keys(policy).length === 0
    ? {}
    : { [names.AGENT_POLICY_ANNOTATION]: JSON.stringify(policy) };
}

/** The policy for the signal named `created`; empty when the annotation belongs to another signal. */
export function agentPolicyFor(annotations: Annotations | undefined, created: string): AgentPolicy {
  const isOurs = annotations?.[names.ROLLOUT_ANNOTATION]?.endsWith(`/${created}`) === true;
  return isOurs ? decodeAgentPolicy(annotations) : {};
}

/** For any signal. */
export function decodeAgentPolicy(annotations: Annotations | undefined): AgentPolicy {
  return recordOf(POLICY)(parseJson(annotations?.[names.AGENT_POLICY_ANNOTATION])) ?? {};
}
