/** Encodes what a leader asks the agent of a waiting node to fetch before its turn. Other agents than ours ignore it. */
import { isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import {
  type AgentPolicy,
  type Annotations,
  decodeAgentPolicy,
  decodeCommand,
  encodeCommand,
  type SignalCommand,
} from './annotations.ts';
import { AGENT_POLICY_ANNOTATION, PREFETCH_ANNOTATION } from './names.ts';

export interface Prefetch {
  /** Uid of the rollout that asks. */
  readonly rollout: string;
  readonly command: SignalCommand;
  /** Only what concerns downloads. */
  readonly policy: AgentPolicy;
}

export function encodePrefetch({ rollout, command, policy }: Prefetch): Record<string, string> {
  const { requireHttps, diskReserveBytes, downloadTimeoutMs, spreadMs } = policy;
  const limits = { requireHttps, diskReserveBytes, downloadTimeoutMs, spreadMs };
  return { [PREFETCH_ANNOTATION]: JSON.stringify({ rollout, command: encodeCommand(command), policy: limits }) };
}

/** Undefined when nothing is asked for, or nothing that can be verified. */
export function decodePrefetch(annotations: Annotations | undefined): Prefetch | undefined {
  return annotations && decode(annotations);
}

const decode = onceForEach((annotations: Annotations): Prefetch | undefined => {
  const value = parseJson(annotations[PREFETCH_ANNOTATION]);
  if (!isRecord(value) || typeof value['rollout'] !== 'string') return undefined;
  const command = decodeCommand(value['command']);
  if (command?.kind !== 'k0supdate' || command.sha256 === undefined) return undefined;
  const policy = decodeAgentPolicy({ [AGENT_POLICY_ANNOTATION]: JSON.stringify(value['policy'] ?? {}) });
  return { rollout: value['rollout'], command, policy };
});
