/** Owns what a policy asks of the agent: told beside the signal, in an annotation of ours that original agents leave alone. */
import { isRecord } from '../util/json.ts';
import type { Annotations } from './codec.ts';
import { AGENT_POLICY_ANNOTATION, ROLLOUT_ANNOTATION } from './names.ts';

/** What a node is held to that drains itself. What is absent is as where nobody asks: everything goes, without end. */
export interface AgentDrain {
  /** The node is neither cordoned nor drained. */
  readonly enabled?: false;
  readonly localData?: 'refuse';
  readonly unmanagedPods?: 'refuse';
  readonly gracePeriodSeconds?: number;
  /** Milliseconds after which the node gives up by itself. */
  readonly timeoutMs?: number;
  /** A cordon that somebody else set goes too, once the node is updated. */
  readonly uncordon?: 'always';
}

/** What is absent is as the agent's own flags say. Times in milliseconds. */
export interface AgentPolicy {
  /** How long the new process must stay as it is before the update counts as proven. */
  readonly soakMs?: number;
  /** How long a restarted service may take to answer with its version. */
  readonly restartTimeoutMs?: number;
  /** How long the node may take to be Ready after that. */
  readonly readyTimeoutMs?: number;
  /** How long a download may take, over all attempts. */
  readonly downloadTimeoutMs?: number;
  /** No byte of a download may come over plain http, whatever its server redirects to. */
  readonly requireHttps?: true;
  /**
   * In whose name the agent cordons its own Node in the very write that says it is ready to be drained: the leader need
   * not write for that. It is the leader who drains, and who lifts the cordon.
   */
  readonly cordonFor?: string;
  /** True where the node was cordoned already when it was signalled: that cordon is to stay. */
  readonly foundCordoned?: true;
  readonly drain?: AgentDrain;
  /** `leader`: whoever wrote the signal cordons, drains and uncordons; absent: as the leader's lease tells. */
  readonly cordoning?: 'leader';
}

const TIMES = ['soakMs', 'restartTimeoutMs', 'readyTimeoutMs', 'downloadTimeoutMs'] as const;

/** No annotation where nothing is asked. */
export function encodeAgentPolicy(policy: AgentPolicy): Record<string, string> {
  return Object.keys(policy).length === 0 ? {} : { [AGENT_POLICY_ANNOTATION]: JSON.stringify(policy) };
}

/** What is asked for the signal named `created`: of any other, such as one that another leader wrote over, nothing counts. */
export function agentPolicyFor(annotations: Annotations | undefined, created: string): AgentPolicy {
  const isOurs = annotations?.[ROLLOUT_ANNOTATION]?.endsWith(`/${created}`) === true;
  return isOurs ? decodeAgentPolicy(annotations) : {};
}

/** Whatever signal it is for. A member that is not what it should be is as good as absent. */
export function decodeAgentPolicy(annotations: Annotations | undefined): AgentPolicy {
  const value = parse(annotations?.[AGENT_POLICY_ANNOTATION]);
  if (!isRecord(value)) return {};
  const times = TIMES.flatMap((name): [string, number][] => {
    const ms = value[name];
    return isTime(ms) ? [[name, ms]] : [];
  });
  const { cordoning, cordonFor, foundCordoned, requireHttps, drain } = value;
  return {
    ...Object.fromEntries(times),
    ...(typeof cordonFor === 'string' && cordonFor !== '' ? { cordonFor } : {}),
    ...(foundCordoned === true ? { foundCordoned } : {}),
    ...(requireHttps === true ? { requireHttps } : {}),
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
    ...(isTime(gracePeriodSeconds) && Number.isInteger(gracePeriodSeconds) ? { gracePeriodSeconds } : {}),
    ...(isTime(timeoutMs) ? { timeoutMs } : {}),
    ...(uncordon === 'always' ? { uncordon } : {}),
  };
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function parse(text = 'null'): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
