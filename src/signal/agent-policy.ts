/** The part of a policy that the agent needs: an annotation of ours beside the signal, ignored by original agents. */
import { isRecord, parseJson } from '../util/json.ts';
import type { Annotations } from './codec.ts';
import { AGENT_POLICY_ANNOTATION, ROLLOUT_ANNOTATION } from './names.ts';

/** Drain options for a node that drains itself; without options every pod is evicted, without a time limit. */
export interface AgentDrain {
  /** The node is neither cordoned nor drained. */
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
  /** How long the node may then take to become Ready. */
  readonly readyTimeoutMs?: number;
  /** How long a download may take, over all attempts. */
  readonly downloadTimeoutMs?: number;
  /** Refuses plain http for downloads, redirects included. */
  readonly requireHttps?: true;
  /** Bytes that a download leaves free on its disk. */
  readonly diskReserveBytes?: number;
  /**
   * Owner of the cordon that the agent sets in the write that reports Cordoning, which saves the leader a write. The
   * leader drains and uncordons.
   */
  readonly cordonFor?: string;
  /** True when the node was cordoned before it was signalled: that cordon stays. */
  readonly foundCordoned?: true;
  readonly drain?: AgentDrain;
  /** `leader`: the leader that wrote the signal cordons, drains and uncordons. Absent: the leader's lease decides. */
  readonly cordoning?: 'leader';
}

const TIMES = ['soakMs', 'restartTimeoutMs', 'readyTimeoutMs', 'downloadTimeoutMs'] as const;

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
