/** Encodes and decodes a signal, two annotations exactly as k0s has them, and our policy and report beside it. */
import { escapeLikeGo, isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import {
  AGENT_POLICY_ANNOTATION,
  REPORT_ANNOTATION,
  ROLLOUT_ANNOTATION,
  SIGNAL_DATA_ANNOTATION,
  SIGNAL_STATUSES,
  SIGNAL_VERSION_ANNOTATION,
} from './names.ts';

export interface SignalCommand {
  readonly id: number;
  readonly kind: 'k0supdate' | 'airgapupdate';
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
  annotations[SIGNAL_VERSION_ANNOTATION] === 'v2'
    ? toSignal(parseJson(annotations[SIGNAL_DATA_ANNOTATION]))
    : undefined,
);

/** The two annotations of a signal, in the key order and with the escapes that k0s itself writes. */
export function encodeSignal({ planId, created, command, status }: SignalData): Record<string, string> {
  const data = { planId, created, command: encodeCommand(command), ...(status ? { status } : {}) };
  return { [SIGNAL_VERSION_ANNOTATION]: 'v2', [SIGNAL_DATA_ANNOTATION]: escapeLikeGo(JSON.stringify(data)) };
}

export function encodeCommand({ id, kind, url, version, sha256, forceupdate }: SignalCommand): object {
  const body = { url, version, ...(sha256 ? { sha256 } : {}), ...(forceupdate ? { forceupdate } : {}) };
  return { id, [kind]: body };
}

function toSignal(value: unknown): SignalData | undefined {
  if (!isRecord(value) || !isText(value['planId']) || !isText(value['created'])) return undefined;
  const command = decodeCommand(value['command']);
  if (!command) return undefined;
  const signal = { planId: value['planId'], created: value['created'], command };
  if (value['status'] === undefined || value['status'] === null) return signal;
  const status = value['status'];
  if (!isRecord(status) || !isText(status['status']) || !isText(status['timestamp'])) return undefined;
  return { ...signal, status: { status: status['status'], timestamp: status['timestamp'] } };
}

/** Undefined when no k0s node would accept it. */
export function decodeCommand(value: unknown): SignalCommand | undefined {
  if (!isRecord(value) || !Number.isInteger(value['id'])) return undefined;
  const kinds = (['k0supdate', 'airgapupdate'] as const).filter((kind) => isRecord(value[kind]));
  const [kind] = kinds;
  const body = kind && kinds.length === 1 ? value[kind] : undefined;
  if (!kind || !isRecord(body) || !isText(body['version']) || !isText(body['url']) || !URL.canParse(body['url']))
    return undefined;
  // As Go: null counts as absent, and another type is refused. Ignoring a bad sha256 would skip the verification.
  if (typeof (body['sha256'] ?? '') !== 'string' || typeof (body['forceupdate'] ?? false) !== 'boolean')
    return undefined;
  return {
    id: value['id'] as number,
    kind,
    url: body['url'],
    version: body['version'],
    ...(isText(body['sha256']) ? { sha256: body['sha256'] } : {}),
    ...(body['forceupdate'] === true ? { forceupdate: true } : {}),
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

export interface AgentReport {
  /** `created` of its signal: a report beside another signal is ignored. */
  readonly created: string;
  /** Version that ran before. */
  readonly from?: string;
  /** Milliseconds spent in each earlier status. */
  readonly spent?: Readonly<Record<string, number>>;
  /** Why it failed, for people; at most REASON_LIMIT characters. */
  readonly reason?: string;
  /** True when the previous binary was rolled back to and runs again; false when the service may still restart. */
  readonly rolledBack?: boolean;
  /** Step that exceeded the time limit of the policy. */
  readonly late?: 'drain';
  /** True when the agent's own rules refused the signal. */
  readonly refused?: true;
}

export const REASON_LIMIT = 512;

export function encodeReport(report: AgentReport): Record<string, string> {
  const reason = report.reason?.slice(0, REASON_LIMIT);
  return { [REPORT_ANNOTATION]: JSON.stringify({ ...report, ...(reason === undefined ? {} : { reason }) }) };
}

/** Undefined when there is no report for the signal `created`. */
export function decodeReport(annotations: Annotations | undefined, created: string): AgentReport | undefined {
  const value = parseJson(annotations?.[REPORT_ANNOTATION]);
  return isRecord(value) && value['created'] === created ? toReport(value, created) : undefined;
}

/** Others may write this annotation too: invalid members are ignored. */
function toReport(
  { from, spent, reason, rolledBack, late, refused }: Record<string, unknown>,
  created: string,
): AgentReport {
  return {
    created,
    ...(typeof from === 'string' ? { from } : {}),
    ...(isRecord(spent) ? { spent: timesIn(spent) } : {}),
    ...(typeof reason === 'string' ? { reason: reason.slice(0, REASON_LIMIT) } : {}),
    ...(typeof rolledBack === 'boolean' ? { rolledBack } : {}),
    ...(late === 'drain' ? { late } : {}),
    ...(refused === true ? { refused } : {}),
  };
}

function timesIn(spent: Record<string, unknown>): Record<string, number> {
  const times = SIGNAL_STATUSES.flatMap((step): [string, number][] => {
    const ms = Object.hasOwn(spent, step) ? spent[step] : undefined;
    return isAmount(ms) ? [[step, ms]] : [];
  });
  return Object.fromEntries(times);
}

/** Drain options for a node that drains itself; without options every pod is evicted, without a time limit. */
export interface AgentDrain {
  readonly enabled?: false;
  readonly localData?: 'refuse';
  readonly unmanagedPods?: 'refuse';
  readonly gracePeriodSeconds?: number;
  /** Milliseconds after which the node gives up. */
  readonly timeoutMs?: number;
  /** Removes also a foreign cordon, once the node is updated. */
  readonly uncordon?: 'always';
}

/** Overrides the agent's flags. Times in milliseconds. */
export interface AgentPolicy {
  /** How long the new process must keep running before the update counts as proven. */
  readonly soakMs?: number;
  /** How long a restarted service may take to answer with its version. */
  readonly restartTimeoutMs?: number;
  /** How long the node may take to become Ready, from the new version's first answer. */
  readonly readyTimeoutMs?: number;
  /** How long a download may take, over all attempts. */
  readonly downloadTimeoutMs?: number;
  /** What is fetched ahead begins at a random moment within so long: many nodes and clusters share a server. */
  readonly spreadMs?: number;
  /** Refuses plain http for downloads, redirects included. */
  readonly requireHttps?: true;
  /** Bytes that a download leaves free on its disk. */
  readonly diskReserveBytes?: number;
  /** Owner of the cordon that the agent sets as it reports Cordoning: that saves the leader, which drains, a write. */
  readonly cordonFor?: string;
  /** True when the node was cordoned before it was signalled: that cordon stays. */
  readonly foundCordoned?: true;
  readonly drain?: AgentDrain;
  /** `leader`: the leader that wrote the signal cordons, drains and uncordons. Absent: the leader's lease decides. */
  readonly cordoning?: 'leader';
}

const TIMES = ['soakMs', 'restartTimeoutMs', 'readyTimeoutMs', 'downloadTimeoutMs', 'spreadMs'] as const;

/** No annotation for an empty policy. */
export function encodeAgentPolicy(policy: AgentPolicy): Record<string, string> {
  return Object.keys(policy).length === 0 ? {} : { [AGENT_POLICY_ANNOTATION]: JSON.stringify(policy) };
}

/** The policy for the signal named `created`; empty when the annotation belongs to another signal. */
export function agentPolicyFor(annotations: Annotations | undefined, created: string): AgentPolicy {
  const isOurs = annotations?.[ROLLOUT_ANNOTATION]?.endsWith(`/${created}`) === true;
  return isOurs ? decodeAgentPolicy(annotations) : {};
}

/** For any signal. Invalid members are ignored. */
export function decodeAgentPolicy(annotations: Annotations | undefined): AgentPolicy {
  const value = parseJson(annotations?.[AGENT_POLICY_ANNOTATION]);
  if (!isRecord(value)) return {};
  const times = TIMES.flatMap((name): [string, number][] => {
    const ms = value[name];
    return isAmount(ms) ? [[name, ms]] : [];
  });
  const { cordoning, cordonFor, foundCordoned, requireHttps, diskReserveBytes, drain } = value;
  return {
    ...Object.fromEntries(times),
    ...(typeof cordonFor === 'string' && cordonFor !== '' ? { cordonFor } : {}),
    ...(foundCordoned === true ? { foundCordoned } : {}),
    ...(requireHttps === true ? { requireHttps } : {}),
    ...(isAmount(diskReserveBytes) ? { diskReserveBytes } : {}),
    ...(isRecord(drain) ? { drain: toDrain(drain) } : {}),
    ...(cordoning === 'leader' ? { cordoning } : {}),
  };
}

function toDrain(value: Record<string, unknown>): AgentDrain {
  const { enabled, localData, unmanagedPods, gracePeriodSeconds, timeoutMs, uncordon } = value;
  return {
    ...(enabled === false ? { enabled } : {}),
    ...(localData === 'refuse' ? { localData } : {}),
    ...(unmanagedPods === 'refuse' ? { unmanagedPods } : {}),
    ...(isAmount(gracePeriodSeconds) && Number.isInteger(gracePeriodSeconds) ? { gracePeriodSeconds } : {}),
    ...(isAmount(timeoutMs) ? { timeoutMs } : {}),
    ...(uncordon === 'always' ? { uncordon } : {}),
  };
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
