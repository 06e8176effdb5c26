/** Encodes what a leader asks the agent of a waiting node to try, or to fetch before its turn. Other agents than ours ignore it. */
import { hash } from 'node:crypto';
import { defined, isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import * as signals from './annotations.ts';
import {
  AGENT_POLICY_ANNOTATION,
  DOWNLOAD_CHECK_ANNOTATION,
  PREFETCH_ANNOTATION,
} from './names.ts';

export interface Prefetch extends Omit<DownloadCheck, 'commands'> {
  readonly command: signals.SignalCommand;
}

export interface DownloadCheck {
  /** Uid of the rollout that asks. */
  readonly rollout: string;
  readonly commands: readonly signals.SignalCommand[];
  readonly policy: signals.AgentPolicy;
}

export function encodePrefetch({ command, ...prefetch }: Prefetch): Record<string, string> {
  return { [PREFETCH_ANNOTATION]: encode({ ...prefetch, commands: [command] }) };
}

export function encodeDownloadCheck(check: DownloadCheck): Record<string, string> {
  return { [DOWNLOAD_CHECK_ANNOTATION]: encode(check) };
}

function encode({ rollout, commands, policy }: DownloadCheck): string {
  return JSON.stringify({
    rollout,
    commands: commands.map(signals.encodeCommand),
    policy: forDownloads(policy),
  });
}

/** Only what concerns downloads. */
export function forDownloads(policy: signals.AgentPolicy): signals.AgentPolicy {
  const { requireHttps, diskReserveBytes, downloadTimeoutMs, spreadMs } = policy;
  return defined({ requireHttps, diskReserveBytes, downloadTimeoutMs, spreadMs });
}

/** Undefined when nothing is asked for, or nothing that can be verified. */
export function decodePrefetch(annotations: signals.Annotations = {}): Prefetch | undefined {
  const asked = read(annotations).prefetch;
  const command = asked?.commands[0];
  if (command?.kind !== 'k0supdate' || command.sha256 === undefined || !asked) return undefined;
  return { rollout: asked.rollout, command, policy: asked.policy };
}

export function decodeDownloadCheck(
  annotations: signals.Annotations = {},
): DownloadCheck | undefined {
  return read(annotations).check;
}

/** Names the check in its answer. */
export const downloadCheckId = onceForEach((annotations: signals.Annotations): string =>
  hash('sha256', annotations[DOWNLOAD_CHECK_ANNOTATION] ?? '').slice(0, 16),
);

const read = onceForEach((annotations: signals.Annotations) => {
  const { [PREFETCH_ANNOTATION]: prefetch, [DOWNLOAD_CHECK_ANNOTATION]: check } = annotations;
  return { prefetch: decode(prefetch), check: decode(check) };
});

/** More are not read: somebody else may have written them. */
export const MOST_COMMANDS = 8;

function decode(text: string | undefined): DownloadCheck | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || typeof value['rollout'] !== 'string' || !Array.isArray(value['commands']))
    return undefined;
  const commands = value['commands']
    .slice(0, MOST_COMMANDS)
    .flatMap((command) => signals.decodeCommand(command) ?? []);
  const policy = signals.decodeAgentPolicy({
    [AGENT_POLICY_ANNOTATION]: JSON.stringify(value['policy'] ?? {}),
  });
  return { rollout: value['rollout'], commands, policy };
}
